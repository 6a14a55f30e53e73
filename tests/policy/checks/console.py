# SPDX-License-Identifier: AGPL-3.0-only
"""Commands in the README and docs do what is printed under them.

In a ```console block, each `$ command` runs in the repository, with the built tool on the path, and
its output is compared after numbers became N and runs of blanks one blank. A line `...` stands for
any lines. `<!-- needs hardware -->` and `<!-- not run: reason -->` above a block leave it alone.
"""

import os
import re
import subprocess

from markdown import blocks_of

LIMIT_SECONDS = 30
NUMBER = re.compile(r"\d+(?:[.:]\d+)*(?:e[+-]?\d+)?")


def normalised(output):
    lines = [re.sub(r"\s+", " ", NUMBER.sub("N", line)).strip() for line in output.splitlines()]
    return [line for line in lines if line]


def matches(expected, actual):
    """Whether the lines agree, where an expected `...` stands for any number of lines."""
    if not expected:
        return not actual
    if expected[0] == "...":
        return any(matches(expected[1:], actual[n:]) for n in range(len(actual) + 1))
    return bool(actual) and expected[0] == actual[0] and matches(expected[1:], actual[1:])


def commands_of(body):
    """(command, expected output) pairs; a command may go on after a backslash."""
    body = body.replace("\\\n", " ")
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


def run(command, tree):
    environment = dict(os.environ, PATH=f"{tree.build}/app:{os.environ['PATH']}")
    result = subprocess.run(
        ["bash", "-c", command], cwd=tree.root, env=environment, timeout=LIMIT_SECONDS, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
    )
    return result.stdout


def violations(tree, run_command=run):
    for block in blocks_of(tree):
        if block.language != "console" or re.match(r"needs hardware|not run: \S", block.note):
            continue
        for command, expected in commands_of(block.body):
            try:
                output = run_command(command, tree)
            except subprocess.TimeoutExpired:
                yield f"{block.where}: '{command}' ran for more than {LIMIT_SECONDS} s"
                continue
            if not matches(normalised(expected), normalised(output)):
                yield f"{block.where}: '{command}' printed:\n{output.rstrip()}"
