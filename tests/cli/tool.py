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


# What launchers set; the tests may themselves run under one.
OF_LAUNCHERS = ("SPARK_COMM_", "NCCL_", "SLURM_", "OMPI_", "PMIX_", "MASTER_")


def environment_with(**variables):
    """The variables over a clean environment."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(OF_LAUNCHERS) and name not in ("RANK", "WORLD_SIZE")
    }
    environment.update(variables)
    return environment


def run(*arguments, timeout=60, **variables):
    """Runs the tool with the variables set over a clean environment of its own."""
    return Result(
        subprocess.run(
            [os.environ["SPARK_COMM_TOOL"], *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=timeout,
            env=environment_with(**variables),
            check=False,
        )
    )
