# SPDX-License-Identifier: AGPL-3.0-only
"""clang-format 19 finds nothing to change in any C++ or CUDA file."""

import re
import shutil
import subprocess

TOOL = "clang-format-19"


def missing():
    return None if shutil.which(TOOL) else f"{TOOL} is not installed"


def violations(tree):
    files = [path for path, _ in tree.cpp()]
    result = subprocess.run(
        [TOOL, "--dry-run", "-Werror", *files], cwd=tree.root, capture_output=True, text=True
    )
    first_lines = {}
    for path, line in re.findall(r"^(\S+?):(\d+):\d+: (?:error|warning):", result.stderr, re.MULTILINE):
        first_lines.setdefault(path, line)
    for path, line in first_lines.items():
        yield f"{path}:{line}: not as {TOOL} has it; run tools/format"
    if result.returncode != 0 and not first_lines:
        yield result.stderr.strip()
