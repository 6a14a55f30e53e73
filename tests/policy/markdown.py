# SPDX-License-Identifier: AGPL-3.0-only
"""Fenced blocks of the README and of docs/, with the HTML comment above each."""

import re

PAGES = r"README\.md|docs/.*\.md"
BLOCK = re.compile(
    r"(?:^<!--[ ]*(?P<note>[^\n]*?)[ ]*-->\n+)?^```(?P<language>\w*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


class Block:
    """One fenced block; `where` is its page and line."""

    def __init__(self, path, text, match):
        self.where = f"{path}:{text.count(chr(10), 0, match.start('body'))}"
        self.note = match.group("note") or ""
        self.language = match.group("language")
        self.body = match.group("body")


def blocks_of(tree):
    for path, text in tree.matching(PAGES):
        for match in BLOCK.finditer(text):
            yield Block(path, text, match)
