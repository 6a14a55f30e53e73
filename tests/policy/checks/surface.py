# SPDX-License-Identifier: AGPL-3.0-only
"""docs/surface.md and docs/cases.md name tests that exist.

docs/surface.md is | what | here | tests | state |: a row that is done names at least one `suite.case`;
one that is open may name none. Nothing else is a state, and whatever a row names must exist.
docs/cases.md names tests in its last column, those in Python as `Class.test_case`.
"""

import re

from tree import numbered, without_comments

PAGE = "docs/surface.md"
CASE = re.compile(r"\b(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\s*\)")
CASES_PAGE = "docs/cases.md"
PYTHON_CASE = re.compile(r"^class (\w+)|^    def (test_\w+)", re.MULTILINE)
STATES = ("done", "open")


def cases_of(tree):
    cases = set()
    for _, text in tree.matching(r"tests/.*\.cpp"):
        cases.update(f"{suite}.{case}" for suite, case in CASE.findall(without_comments(text)))
    for _, text in tree.matching(r"tests/.*_test\.py"):
        suite = ""
        for name, case in PYTHON_CASE.findall(text):
            suite = name or suite
            cases.add(f"{suite}.{case}")
    return cases


def unknown_in_cases(tree, cases):
    for number, cells in rows_of(tree.files.get(CASES_PAGE, "")):
        for name in re.findall(r"`(\w+\.\w+)`", cells[-1]):
            if name not in cases:
                yield f"{CASES_PAGE}:{number}: no test {name}"


def rows_of(text):
    """(line, cells) of the rows of the page's table, without its head."""
    for number, line in numbered(text):
        if line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if set(cells[0]) != {"-"} and cells[-1] not in ("state", "test"):
                yield number, cells


def violations(tree):
    cases = cases_of(tree)
    rows = list(rows_of(tree.files.get(PAGE, "")))
    if not rows:
        yield f"{PAGE}: no rows"
    for number, cells in rows:
        where = f"{PAGE}:{number}"
        if len(cells) != 4:
            yield f"{where}: {len(cells)} cells instead of 4"
            continue
        _, _, tests, state = cells
        named = re.findall(r"`([^`]+)`", tests)
        if state not in STATES:
            yield f"{where}: state '{state}' is none of {', '.join(STATES)}"
        if state == "done" and not named:
            yield f"{where}: done, but names no test"
        for name in named:
            if name not in cases:
                yield f"{where}: no test {name}"
    yield from unknown_in_cases(tree, cases)
