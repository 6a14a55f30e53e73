# SPDX-License-Identifier: AGPL-3.0-only
"""Runs the tool and keeps what it said."""

import os
import subprocess


class Result:
    def __init__(self, process):
        self.code = process.returncode
        self.out = process.stdout
        self.err = process.stderr

    @property
    def table(self):
        """The rows of the table: lines that are no comment, split at blanks."""
        return [line.split() for line in self.out.splitlines() if line and not line.startswith("#")]


def run(*arguments, timeout=60, **variables):
    """Runs the tool with the variables set over a clean environment of its own."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SPARK_COMM_", "NCCL_"))
    }
    environment.update(variables)
    return Result(
        subprocess.run(
            [os.environ["SPARK_COMM_TOOL"], *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=timeout,
            env=environment,
            check=False,
        )
    )
