# SPDX-License-Identifier: AGPL-3.0-only
"""The files that the checks look at: the repository's, or planted ones in a self-test."""

import pathlib
import re
import subprocess

CPP_SUFFIXES = (".hpp", ".cpp", ".cu", ".cuh", ".h", ".c")


class Tree:
    """Text files by their path from the root. A check takes a tree and yields one line a violation."""

    def __init__(self, files, root=None):
        self.files = files
        self.root = root

    @classmethod
    def of_repository(cls, root):
        root = pathlib.Path(root)
        listing = subprocess.run(
            ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            capture_output=True,
        )
        if listing.returncode == 0:
            paths = [root / name for name in listing.stdout.decode().split("\0") if name]
        else:  # an unpacked archive
            paths = [p for p in root.rglob("*") if p.relative_to(root).parts[0] not in ("build", ".git")]
        files = {}
        for path in paths:
            if path.is_file():
                files[path.relative_to(root).as_posix()] = path.read_text(encoding="utf-8", errors="replace")
        return cls(files, root)

    def matching(self, pattern):
        """(path, text) of the files whose whole path matches, in order."""
        return [(path, self.files[path]) for path in sorted(self.files) if re.fullmatch(pattern, path)]

    def cpp(self):
        return [(path, text) for path, text in sorted(self.files.items()) if path.endswith(CPP_SUFFIXES)]


def numbered(text):
    """(number, line) from 1 on; a carriage return stays in its line."""
    return enumerate(text.removesuffix("\n").split("\n"), start=1)


def without_comments(text):
    """C++ with comments and the contents of string literals blanked; line numbers stay."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.DOTALL)

    def blank(match):
        newlines = "\n" * match.group(0).count("\n")
        return newlines if match.group(0).startswith("/") else '""' + newlines

    return token.sub(blank, text)
