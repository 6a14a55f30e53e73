# SPDX-License-Identifier: AGPL-3.0-only
"""Metrics of a running job: the text's format, its numbers, HTTP, the dashboard and the alerts."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from exposition import parse
from tool import run

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
METRICS = os.path.join(ROOT, "docs", "metrics")
PROMTOOL = shutil.which("promtool")


def value_of(samples, name, **labels):
    found = [
        value for each, given, value in samples
        if each == name and labels.items() <= given.items()
    ]
    assert found, (name, labels)
    return sum(found)


class Job(unittest.TestCase):
    """One run of a benchmark, looked at from all sides."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="spark_comm_metrics_")
        cls.result = run(
            "bench", "all_reduce", "--runtime", "host", "--ranks", "2", "--min", "64K", "--max", "64K",
            "--iterations", "20", "--path", "nccl",
            SPARK_COMM_METRICS_DIR=cls.folder.name, SPARK_COMM_HEARTBEAT_MS="10",
        )
        cls.texts = {}
        for name in sorted(os.listdir(cls.folder.name)):
            with open(os.path.join(cls.folder.name, name), encoding="utf-8") as file:
                cls.texts[name] = file.read()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_each_rank_has_a_file_and_nothing_else_is_left(self):
        self.assertEqual(self.result.code, 0, self.result.err)
        self.assertEqual(len(self.texts), 2)
        for name in self.texts:
            self.assertRegex(name, r"^spark_comm-.*-rank[01]\.prom$")

    def test_the_text_is_as_prometheus_wants_it(self):
        for text in self.texts.values():
            kinds, samples = parse(text)
            self.assertEqual(kinds["spark_comm_operation_seconds"], "histogram")
            self.assertEqual(kinds["spark_comm_errors_total"], "counter")
            for name, kind in kinds.items():
                self.assertTrue(name.startswith("spark_comm_"))
                self.assertEqual(name.endswith("_total"), kind == "counter", name)

    @unittest.skipUnless(PROMTOOL, "promtool is not installed")
    def test_promtool_finds_no_fault_in_it(self):
        for text in self.texts.values():
            judged = subprocess.run(
                [PROMTOOL, "check", "metrics"], input=text, text=True, capture_output=True, check=False
            )
            self.assertEqual((judged.returncode, judged.stdout, judged.stderr), (0, "", ""))

    def test_the_numbers_are_those_of_the_job(self):
        for text in self.texts.values():
            _, samples = parse(text)
            count = value_of(samples, "spark_comm_operation_seconds_count", operation="all_reduce")
            bytes_moved = value_of(
                samples, "spark_comm_operation_bytes_total", operation="all_reduce", path="nccl"
            )
            self.assertGreater(count, 0)  # the last ones end unseen when the job does
            self.assertEqual(bytes_moved, count * 64 * 1024)
            self.assertEqual(value_of(samples, "spark_comm_world_size"), 2)
            self.assertEqual(value_of(samples, "spark_comm_generation"), 1)
            self.assertEqual(value_of(samples, "spark_comm_errors_total"), 0)
            self.assertGreater(value_of(samples, "spark_comm_looks_total"), 0)
            self.assertEqual(value_of(samples, "spark_comm_up"), 0)  # it has ended

    def test_dashboard_and_alerts_name_metrics_that_exist(self):
        names = {name for text in self.texts.values() for name, _, _ in parse(text)[1]}
        families = {kind for text in self.texts.values() for kind in parse(text)[0]}
        for file_name in ("dashboard.json", "alerts.yml"):
            with open(os.path.join(METRICS, file_name), encoding="utf-8") as file:
                text = file.read()
            asked = set(re.findall(r"\bspark_comm_\w+", text))
            self.assertGreater(len(asked), 3)
            self.assertLessEqual(asked, names | families, file_name)

    def test_the_documentation_lists_every_metric(self):
        with open(os.path.join(ROOT, "docs", "metrics.md"), encoding="utf-8") as file:
            text = file.read()
        documented = set(re.findall(r"^\| `(spark_comm_\w+)`", text, re.MULTILINE))
        self.assertEqual(documented, set(parse(next(iter(self.texts.values())))[0]))


class Rules(unittest.TestCase):
    @unittest.skipUnless(PROMTOOL, "promtool is not installed")
    def test_the_alerts_go_off_when_they_should(self):
        judged = subprocess.run(
            [PROMTOOL, "test", "rules", os.path.join(METRICS, "alerts_test.yml")],
            text=True, capture_output=True, check=False,
        )
        self.assertEqual(judged.returncode, 0, judged.stdout + judged.stderr)

    def test_the_dashboard_is_whole(self):
        with open(os.path.join(METRICS, "dashboard.json"), encoding="utf-8") as file:
            board = json.load(file)
        self.assertEqual(len({panel["id"] for panel in board["panels"]}), len(board["panels"]))
        for panel in board["panels"]:
            self.assertTrue(panel["targets"])
            for target in panel["targets"]:
                self.assertIn("$communicator", target["expr"])

    def test_the_format_is_read_strictly(self):
        good = '# HELP a b\n# TYPE a counter\na{x="y\\"z"} 1\n'
        self.assertEqual(parse(good)[1], [("a", {"x": 'y\\"z'}, 1.0)])
        for bad in (
            "a 1\n",
            good.rstrip(),
            good + good,
            good.replace("counter", "meter"),
            good.replace('"y', "y"),
            good.replace(" 1", ""),
            good + 'a{x="y\\"z"} 2\n',
            "# HELP h t\n# TYPE h histogram\n" + 'h_bucket{le="1"} 2\nh_sum 1\nh_count 2\n',
        ):
            with self.assertRaises((ValueError, IndexError)):
                parse(bad)


if __name__ == "__main__":
    unittest.main()
