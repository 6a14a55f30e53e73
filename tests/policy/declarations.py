# SPDX-License-Identifier: AGPL-3.0-only
"""Reads the names of public functions from a header: free ones and public members.

No C++ parser: it follows braces and access labels and takes the name before the first parenthesis
of a declaration. That is enough for headers in the project's own style.
"""

import re

from tree import without_comments

SCOPE = re.compile(r"\b(namespace|class|struct|union|enum)\b")
NAME = re.compile(r"(~?\b[a-zA-Z_]\w*)\s*\(")
ATTRIBUTES = re.compile(
    r"\[\[.*?\]\]|\balignas\([^)]*\)|\b__attribute__\(\(.*?\)\)|\bnoexcept\s*\([^)]*\)"
)
NO_NAMES = {"requires", "static_assert", "decltype", "operator", "explicit", "sizeof", "if", "using"}


def statements(text):
    """(text before, terminator) for each ;, { and } outside parentheses; preprocessor lines dropped."""
    text = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", "", text, flags=re.MULTILINE)
    start, depth = 0, 0
    for position, character in enumerate(text):
        if character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif character in ";{}" and depth == 0:
            yield text[start:position].strip(), character
            start = position + 1


def without_angles(text):
    """Template arguments and parameters removed, the innermost first."""
    while (shorter := re.sub(r"<[^<>]*>", "", text)) != text:
        text = shorter
    return text


def scope_of(before):
    """What a brace opens: ("namespace"|"class"|"struct"|..., its name), or ("body", "")."""
    if before.startswith('extern "'):
        return "namespace", ""
    plain = without_angles(ATTRIBUTES.sub("", before))
    head = plain.split("(")[0]
    if (match := SCOPE.search(head)) and "=" not in head:
        name = re.search(rf"{match.group(1)}\s+(?:class\s+)?(?:[A-Z_]+\s+)?([\w:]*)", plain)
        return match.group(1), name.group(1) if name else ""
    return "body", ""


def function_name(before, owner):
    """The function that a statement declares, or None."""
    plain = without_angles(ATTRIBUTES.sub("", before))
    if re.search(r"=\s*(default|delete)$", plain) or "operator" in plain or plain.startswith("friend"):
        return None
    match = NAME.search(plain)
    if not match or match.group(1) in NO_NAMES or match.group(1).startswith("~"):
        return None
    name, before_name = match.group(1), plain[: match.start()].strip()
    if "=" in before_name or before_name in ("", "explicit", "constexpr") or name == owner:
        return None  # an initialiser, a call, or a constructor
    return name


def public_functions(header):
    """Names in order of appearance, without constructors, destructors and operators."""
    names, scopes = [], []  # scopes: [kind, name, public]
    for before, end in statements(without_comments(header)):
        while match := re.match(r"(public|protected|private)\s*:(?!:)", before):
            scopes[-1][2] = match.group(1) == "public"
            before = before[match.end():].strip()
        visible = all(kind != "body" and public for kind, _, public in scopes)
        kind, name = scope_of(before) if end == "{" else ("", "")
        owner = scopes[-1][1] if scopes else ""
        if visible and end != "}" and kind in ("", "body"):
            if found := function_name(before, owner):
                names.append(found)
        if end == "{":
            hidden = kind == "class" or (kind == "namespace" and name.endswith("detail"))
            scopes.append([kind, name, not hidden])
        elif end == "}" and scopes:
            scopes.pop()
    return list(dict.fromkeys(names))
