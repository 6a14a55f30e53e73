# SPDX-License-Identifier: AGPL-3.0-only
"""`bench`: one table with known columns, JSON that agrees with it, and an end for every trouble."""

import json
import os
import signal
import subprocess
import tempfile
import time
import unittest

from tool import run

HOST = ("--runtime", "host")
SMALL = (*HOST, "--min", "64", "--max", "4K", "--factor", "8", "--iterations", "5", "--warmup", "1")
OPERATIONS = {
    "all_reduce": True,
    "reduce": True,
    "broadcast": True,
    "all_gather": True,
    "reduce_scatter": True,
    "send_recv": False,
    "all_to_all": False,
}


class Bench(unittest.TestCase):
    def test_each_operation_prints_the_columns(self):
        for operation, has_in_place in OPERATIONS.items():
            with self.subTest(operation=operation):
                result = run("bench", operation, *SMALL)
                self.assertEqual((result.code, result.err), (0, ""))
                self.assertEqual([row[0] for row in result.table], ["64", "512", "4096"])
                for row in result.table:
                    self.assertEqual(len(row), 15, row)
                    self.assertEqual(row[2], "fp32")
                    self.assertGreater(float(row[5]), 0)
                    self.assertLessEqual(float(row[5]), float(row[6]))
                    self.assertEqual(row[9], "0")
                    self.assertEqual(row[14], "0" if has_in_place else "n/a")
                self.assertEqual(result.out.count(f"bench {operation}"), 1)
                self.assertIn("# result   ok", result.out)

    def test_the_header_says_what_on_what_in_which_units(self):
        out = run("bench", "all_reduce", *SMALL).out
        for part in ("machine", "runtime", "versions", "2 processes", "microseconds", "10^9 bytes"):
            self.assertIn(part, out)

    def test_bandwidths_follow_from_the_time(self):
        for row in run("bench", "all_reduce", *HOST, "--ranks", "3", "--min", "1M", "--max", "1M").table:
            algbw = int(row[0]) / float(row[5]) / 1000
            self.assertAlmostEqual(float(row[7]), algbw, delta=0.006)
            self.assertAlmostEqual(float(row[8]), algbw * 4 / 3, delta=0.012)

    def test_a_world_of_one_has_no_busbw(self):
        result = run("bench", "all_reduce", *SMALL, "--ranks", "1")
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertEqual({row[8] for row in result.table}, {"n/a"})

    def test_other_types_reductions_and_modes(self):
        for options in (
            ("--dtype", "bf16", "--op", "avg", "--ranks", "3"),
            ("--dtype", "int64", "--op", "prod"),
            ("--mode", "pipelined", "--dtype", "fp16", "--op", "max"),
        ):
            with self.subTest(options=options):
                result = run("bench", "all_reduce", *SMALL, *options)
                self.assertEqual((result.code, result.err), (0, ""))

    def test_json_agrees_with_the_table(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "result.json")
            result = run("bench", "broadcast", *SMALL, "--root", "1", "--json", path)
            self.assertEqual((result.code, result.err), (0, ""))
            self.assertEqual(os.listdir(folder), ["result.json"])
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
        self.assertEqual((document["schema"], document["schema_version"]), ("spark-comm/bench", 1))
        self.assertEqual(document["command_line"][:3], ["spark-comm", "bench", "broadcast"])
        self.assertRegex(document["date"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual((document["ranks"], document["result"]), (2, "ok"))
        for key in ("machine", "commit", "device", "driver_version", "nccl_version", "mode"):
            self.assertIn(key, document)
        self.assertEqual(len(document["rows"]), len(result.table))
        for row, cells in zip(document["rows"], result.table):
            self.assertEqual(row["size_bytes"], int(cells[0]))
            self.assertEqual((row["type"], row["redop"], row["root"]), ("fp32", None, 1))
            self.assertAlmostEqual(row["out_of_place"]["median_us"], float(cells[5]), delta=0.006)
            self.assertEqual(row["in_place"]["wrong"], 0)

    def test_too_much_memory_is_refused_with_both_numbers(self):
        result = run("bench", "all_reduce", *HOST, "--min", "64T", "--max", "64T")
        self.assertEqual((result.code, result.out), (2, ""))
        self.assertIn("needs 256 TiB of memory on this machine (2 ranks x 128 TiB", result.err)
        self.assertIn("half of the", result.err)
        self.assertEqual(result.err.count("\n"), 1)

    def test_more_ranks_than_devices_is_refused_with_both_numbers(self):
        result = run("bench", "all_reduce", *SMALL, "--ranks", "3", SPARK_COMM_HOST_DEVICES="2")
        self.assertEqual((result.code, result.out), (2, ""))
        self.assertIn("--ranks 3 needs 3 devices, but 2 are visible", result.err)

    def test_ranks_may_share_a_device_when_asked(self):
        result = run(
            "bench", "all_reduce", *SMALL, "--ranks", "3", "--share-gpu", SPARK_COMM_HOST_DEVICES="1"
        )
        self.assertEqual((result.code, result.err), (0, ""))

    def test_the_link_is_judged(self):
        out = run("bench", "all_reduce", *SMALL, "--link", "1000000").out
        self.assertIn("of the stated link of 1e+06 Gb/s", out)
        self.assertIn("half or less", out)

    def test_a_run_ends_at_its_limit(self):
        began = time.monotonic()
        result = run("bench", "all_reduce", *HOST, "--limit", "1s", "--iterations", "100000")
        self.assertLess(time.monotonic() - began, 10)
        self.assertEqual(result.code, 4, result.err)
        self.assertIn("took longer than its limit of 1 s", result.err)


class Supervision(unittest.TestCase):
    def setUp(self):
        self.process = subprocess.Popen(
            [os.environ["SPARK_COMM_TOOL"], "bench", "all_reduce", *HOST, "--iterations", "100000"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        while not self.process.stdout.readline().startswith("# units"):
            self.assertIsNone(self.process.poll())
        self.ranks = self.children(self.process.pid)

    def tearDown(self):
        self.process.kill()
        self.process.communicate()

    @staticmethod
    def children(parent):
        with open(f"/proc/{parent}/task/{parent}/children", encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]

    def assert_no_rank_is_left(self):
        until = time.monotonic() + 10
        for rank in self.ranks:
            while time.monotonic() < until and self.is_running(rank):
                time.sleep(0.01)
            self.assertFalse(self.is_running(rank))

    @staticmethod
    def is_running(pid):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                return file.read().rsplit(")", 1)[1].split()[0] != "Z"
        except FileNotFoundError:
            return False

    def test_a_killed_rank_is_named_and_ends_all(self):
        self.assertEqual(len(self.ranks), 2)
        os.kill(self.ranks[1], signal.SIGKILL)
        _, error = self.process.communicate(timeout=20)
        self.assertEqual(self.process.returncode, 4)
        self.assertIn("spark-comm: rank 1 was killed by signal 9 (SIGKILL)", error)
        self.assert_no_rank_is_left()

    def test_no_rank_outlives_a_killed_tool(self):
        self.process.kill()
        self.process.communicate(timeout=20)
        self.assert_no_rank_is_left()

    def test_a_request_to_end_ends_all_in_order(self):
        self.process.send_signal(signal.SIGINT)
        _, error = self.process.communicate(timeout=20)
        self.assertEqual(self.process.returncode, 4)
        self.assertIn("interrupted by SIGINT", error)
        self.assert_no_rank_is_left()


if __name__ == "__main__":
    unittest.main()
