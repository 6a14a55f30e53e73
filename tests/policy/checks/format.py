# SPDX-License-Identifier: AGPL-3.0-only
"""clang-format 19 finds nothing to change in any C++ or CUDA file."""

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
    if result.returncode != 0:
        yield result.stderr.strip()
