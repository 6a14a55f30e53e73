#!/usr/bin/env python3
# SPDX-License-Identifier: AGPL-3.0-only
"""Runs one check of checks/ over the repository: prints its violations, fails if there are any."""

import argparse
import importlib
import pathlib
import sys

from tree import Tree

SKIPPED = 77


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("check", help="a module of checks/")
    parser.add_argument("--build", type=pathlib.Path, help="build folder, for checks that run the tool")
    arguments = parser.parse_args()

    tree = Tree.of_repository(pathlib.Path(__file__).resolve().parents[2])
    tree.build = arguments.build
    check = importlib.import_module(f"checks.{arguments.check}")
    if reason := getattr(check, "missing", lambda: None)():
        print(f"{arguments.check}: {reason}")
        return SKIPPED
    violations = list(check.violations(tree))
    print("\n".join(violations) or f"{arguments.check}: no violation")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
