# SPDX-License-Identifier: AGPL-3.0-only
"""Size budgets of files. Functions are measured by clang-tidy, line lengths of C++ by clang-format.

exceptions.txt holds files that may be longer: path, lines, reason.
"""

import re

BUDGETS = [  # first match counts
    (r"app/main\.cpp", 60),
    (r"tests/.*\.(hpp|cpp|cu|cuh|c|py)", 500),
    (r".*-inl\.hpp", 400),  # a source, compiled once for each instruction set
    (r".*\.(hpp|cuh|h)", 250),
    (r".*\.(cpp|cu|c|rs)", 400),
    (r".*\.py|run|test|tools/.*|cmake/.*", 250),
    (r"README\.md", 200),
]
EXCEPTIONS = "tests/policy/exceptions.txt"


def exceptions_of(tree):
    """{path: lines}; the reason is for people, and must be there."""
    rows = {}
    for line in tree.files.get(EXCEPTIONS, "").splitlines():
        if line and not line.startswith("#"):
            path, lines, _reason = line.split(maxsplit=2)
            rows[path] = int(lines)
    return rows


def violations(tree):
    exceptions = exceptions_of(tree)
    for path in exceptions.keys() - tree.files.keys():
        yield f"{EXCEPTIONS}: {path} does not exist"
    for path, text in sorted(tree.files.items()):
        budget = next((limit for pattern, limit in BUDGETS if re.fullmatch(pattern, path)), None)
        if budget is None:
            continue
        lines = len(text.splitlines())
        if path in exceptions and lines <= budget:
            yield f"{EXCEPTIONS}: {path} needs no exception any more"
        if lines > (limit := exceptions.get(path, budget)):
            yield f"{path}: {lines} lines, budget {limit}"
