# SPDX-License-Identifier: AGPL-3.0-only
"""Code in the README and docs is a copy of code that is built: a region of a compiled file.

A block stands under `<!-- snippet: examples/02_all_reduce.cpp -->` (the whole file below its head
comment) or `<!-- snippet: examples/02_all_reduce.cpp#name -->`, the lines between the comments
`[name]` and `[/name]` in that file, at their own indentation.
"""

import re
import textwrap

from markdown import blocks_of

CHECKED_LANGUAGES = ("cpp", "cmake", "c", "cuda", "rust", "python")


def region_of(text, name):
    """The region's text, or None when the file has no such region."""
    comment = r"^[ \t]*(?://|#)[ ]*\[{}\][ \t]*\n"
    begin = re.search(comment.format(re.escape(name)), text, re.MULTILINE)
    end = re.search(comment.format("/" + re.escape(name)), text, re.MULTILINE)
    return textwrap.dedent(text[begin.end():end.start()]) if begin and end else None


def below_head(text):
    """The file without the comment at its top."""
    return re.sub(r"\A(?:(?://|#(?!include))[^\n]*\n)+\n*", "", text)


def violations(tree):
    for block in blocks_of(tree):
        if block.language not in CHECKED_LANGUAGES:
            continue
        match = re.fullmatch(r"snippet: ([\w./-]+?)(?:#(\w+))?", block.note)
        if not match:
            yield f"{block.where}: a {block.language} block without <!-- snippet: file#region -->"
            continue
        path, name = match.groups()
        source = tree.files.get(path)
        region = None if source is None else region_of(source, name) if name else below_head(source)
        if region is None:
            yield f"{block.where}: no region {name or 'at all'} in {path}"
        elif region.strip("\n") != block.body.strip("\n"):
            yield f"{block.where}: differs from {path}" + (f"#{name}" if name else "")
