# SPDX-License-Identifier: AGPL-3.0-only
"""Two machines' halves of a job, started on one with a key file; and what is said of the key: nothing."""

import os
import pathlib
import re
import secrets
import socket
import subprocess
import tempfile
import unittest

from tool import environment_with, run

EXAMPLE = os.environ["SPARK_COMM_EXAMPLES"] + "/06_two_machines"
TOOL = os.environ["SPARK_COMM_TOOL"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class TwoMachines(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.key = secrets.token_hex(32)
        self.head = f"127.0.0.1:{free_port()}"

    def key_file(self, name, key, mode=0o600):
        path = pathlib.Path(self.folder.name) / name
        path.write_text(key + "\n")
        path.chmod(mode)
        return str(path)

    def start(self, node, key_file, *program, **variables):
        """Node `node` of two, as its machine would start it."""
        command = [TOOL, "launch", "-n", "1", "--nodes", "2", "--node-rank", str(node)]
        command += ["--head", self.head]
        command += ["--key-file", key_file] if key_file else []
        return subprocess.Popen(
            command + ["--", *(program or [EXAMPLE])], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment_with(**variables))

    def finish(self, process):
        try:
            out, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return process.returncode, out, err

    def test_the_example_runs_as_two_nodes_with_a_key(self):
        key_file = self.key_file("key", self.key)
        nodes = [self.start(node, key_file) for node in (0, 1)]
        for node, process in enumerate(nodes):
            code, out, err = self.finish(process)
            self.assertEqual((code, err), (0, ""))
            self.assertRegex(out, rf"^\[rank {node}\] rank {node} of 2 on \S+: sum 3, 16 KiB in ")

    def test_the_printed_commands_are_those_that_work(self):
        key_file = self.key_file("a key", self.key)
        printed = run("launch", "-n", "1", "--nodes", "2", "--head", self.head, "--key-file",
                      key_file, "--", EXAMPLE)
        self.assertEqual((printed.code, printed.err), (0, ""))
        self.assertNotIn(self.key, printed.out)
        commands = [line for line in printed.out.splitlines() if not line.startswith("#")]
        self.assertEqual(len(commands), 2)
        environment = environment_with()
        environment["PATH"] = f"{os.path.dirname(TOOL)}:{environment['PATH']}"
        nodes = [
            subprocess.Popen(["sh", "-c", command], stdin=subprocess.DEVNULL, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
            for command in commands
        ]
        for node in nodes:
            code, out, err = self.finish(node)
            self.assertEqual((code, err), (0, ""))
            self.assertIn("sum 3", out)

    def test_a_key_is_never_said_whatever_goes_well_or_wrong(self):
        """Every line and every file of keyed runs, with all diagnostics on."""
        other = secrets.token_hex(32)
        flights = pathlib.Path(self.folder.name) / "flights"
        flights.mkdir()
        loud = {"NCCL_DEBUG": "TRACE", "SPARK_COMM_FLIGHT_DIR": str(flights)}
        right = self.key_file("right", self.key)
        wrong = self.key_file("wrong", other)
        heard = []
        # Well, by file and by value; then with the wrong key, none, a short one, an open file, both.
        for first, second, expected in [
            ((right, {}), (right, {}), 0),
            ((None, {"SPARK_COMM_KEY": self.key}), (right, {}), 0),
        ]:
            nodes = [self.start(0, first[0], **loud, **first[1]),
                     self.start(1, second[0], **loud, **second[1])]
            for node in nodes:
                code, out, err = self.finish(node)
                self.assertEqual(code, expected, err)
                heard += [out, err]
        head = self.start(0, right, **loud)
        short = self.key_file("short", self.key[:12])
        shown = self.key_file("shown", self.key, 0o644)
        for key_file, variables, words in [
            (wrong, {}, "do not share a key"),
            (short, {}, "16"),
            (shown, {}, "shown"),
            (right, {"SPARK_COMM_KEY": self.key}, "SPARK_COMM_KEY"),
        ]:
            code, out, err = self.finish(self.start(1, key_file, **loud, **variables))
            self.assertEqual(code, 4, err)
            self.assertIn(words, err)
            heard += [out, err]
        last = self.start(1, right, **loud)
        for node in (head, last):
            code, out, err = self.finish(node)
            self.assertEqual(code, 0, err)
            heard += [out, err]
        heard.append(run("trace", str(flights), **loud).out)
        heard.append(run("info", "--json", **loud, SPARK_COMM_KEY=self.key).out)
        said = "".join(heard).encode()
        files = [path.read_bytes() for path in flights.iterdir()]
        self.assertGreaterEqual(len(files), 2)
        for key in (self.key, other, self.key[:12]):
            for text in (key.encode(), bytes.fromhex(key)):
                self.assertNotIn(text, said)
                for content in files:
                    self.assertNotIn(text, content)
        self.assertRegex(said.decode(), r"rank \d of 2")


if __name__ == "__main__":
    unittest.main()
