# SPDX-License-Identifier: AGPL-3.0-only
"""Every source file begins with its licence and one to four lines on what it is for; an example, with
more.
"""

import posixpath
import re

SPDX = "SPDX-License-Identifier: AGPL-3.0-only"
SOURCES = r".*(\.(hpp|cpp|cu|cuh|h|c|rs|py|sh|cmake)|CMakeLists\.txt)|run|test|\.ci/run|tools/[^.]+"
PURPOSE_LINES = range(1, 5)
EXAMPLE_LINES = range(5, 16)  # what it shows, needs, how to run, what to expect, what may go wrong


def head_of(path, lines):
    """The comment lines at the top, their markers and a #! line removed."""
    if lines and lines[0].startswith("#!"):
        lines = lines[1:]
    marker = "//" if re.search(r"\.(hpp|cpp|cu|cuh|h|c|rs)$", path) else "#"
    head = []
    for line in lines:
        if not line.startswith(marker):
            break
        head.append(line[len(marker):].strip())
    return head


def purpose_violation(tree, path, text, head):
    if path.endswith(".py") or text.startswith("#!/usr/bin/env python3"):
        below = re.sub(r"\A(#[^\n]*\n)+", "", text)
        return None if below.startswith('"""') or not below else "no docstring after the licence line"
    if path.endswith(("CMakeLists.txt", "_test.cpp")):
        return None  # its folder says it, or the name of what it tests
    folder, stem = posixpath.split(path.removesuffix(".cpp"))
    headers = {f"{folder}/{stem}.hpp", f"{folder}/detail/{stem}.hpp", f"{folder}/{stem}.h"}
    if headers & tree.files.keys():
        return None  # its header says it
    lines = (head[1:] + [""]).index("")  # a further paragraph may explain a protocol or a rule
    wanted = EXAMPLE_LINES if path.startswith("examples/") else PURPOSE_LINES
    if lines not in wanted:
        return f"{lines} lines on what the file is for; {wanted.start} to {wanted.stop - 1} are wanted"
    return None


def violations(tree):
    for path, text in tree.matching(SOURCES):
        head = head_of(path, text.splitlines())
        if not head or head[0] != SPDX:
            yield f"{path}: the first line is not '{SPDX}'"
        elif problem := purpose_violation(tree, path, text, head):
            yield f"{path}: {problem}"
        if path.endswith((".hpp", ".cuh", ".h")) and not path.endswith("-inl.hpp") and "\n#pragma once\n" not in text:
            yield f"{path}: no #pragma once"
