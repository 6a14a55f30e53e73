# SPDX-License-Identifier: AGPL-3.0-only
"""Text that must not be in the repository: unfinished work, one machine's paths, secrets, leftovers."""

import re

from tree import numbered

# Spelt so that this file does not match itself.
FORBIDDEN = [
    (r"\b(FIX[M]E|XX[X]|HA[C]K|WI[P])\b", "unfinished work"),
    (r"\bTO[D]O\b(?!\(#\d+\))", "a to-do without a number; write it as NAME(#12)"),
    (r"(?<![\w.$}/-])/(ho[m]e|ro[o]t|wo[r]k|Us[e]rs)/", "a path of one machine"),
    (r"-----BEGIN [A-Z ]*PRIVATE KEY-----", "a private key"),
    (r"^(<{7}|>{7}) |^={7}$", "a merge conflict"),
    (r"(?i)\b(lor[e]m ips[u]m|generat[e]d (by|with) (an? )?\w+ (model|assistant))\b", "filler"),
    (r"(?i)\bco-author[e]d-by:", "a commit trailer"),
    (r"#prag[m]a GCC diagnostic|\bNOLINT(NEXTLINE|BEGIN|END)?\b(?!\()", "a suppression without the check's name"),
    (r"[ \t]+$", "trailing blanks"),
    (r"\r", "a carriage return"),
    ("\ufffd", "bytes that are no UTF-8"),
]
EXEMPT = r"LICENSE|.*\.json"


def violations(tree):
    rules = [(re.compile(pattern), what) for pattern, what in FORBIDDEN]
    for path, text in sorted(tree.files.items()):
        if re.fullmatch(EXEMPT, path):
            continue
        for number, line in numbered(text):
            for rule, what in rules:
                if match := rule.search(line):
                    yield f"{path}:{number}: {what}: '{match.group(0)}'"
        if text and not text.endswith("\n"):
            yield f"{path}: no newline at the end"
