#!/usr/bin/env python3
# SPDX-License-Identifier: AGPL-3.0-only
"""The summary that ./test ends with: what counts as passed, failed and skipped."""

import pathlib
import sys
import unittest
import xml.etree.ElementTree as xml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from summarise_tests import Summary  # noqa: E402 (the path comes first)

PASSED = '<testcase name="a" status="run"/>'
FAILED = '<testcase name="b" status="fail"><failure message=""/></testcase>'
MISSING = '<testcase name="c" status="notrun"><skipped message="Unable to find executable"/></testcase>'
DISABLED = '<testcase name="d" status="disabled"/>'
SKIPPED = """<testcase name="e" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
<system-out>[ RUN ] e
e_test.cpp:3: Skipped
no GPU here

[  SKIPPED ] e</system-out></testcase>"""


def summary_of(*cases, strict=False, labels=None):
    summary = Summary(strict)
    summary.add("release", xml.fromstring(f"<testsuite>{''.join(cases)}</testsuite>"), labels or {})
    return summary


class Outcomes(unittest.TestCase):
    def test_counts_each_kind(self):
        summary = summary_of(PASSED, FAILED, MISSING, DISABLED, SKIPPED)
        self.assertEqual(str(summary).splitlines()[-1], "1 passed, 3 failed, 1 skipped")
        self.assertFalse(summary.is_good())

    def test_adds_up_runs(self):
        summary = summary_of(PASSED)
        summary.add("asan", xml.fromstring(f"<testsuite>{PASSED}</testsuite>"), {})
        self.assertEqual(str(summary), "2 passed, 0 failed, 0 skipped")
        self.assertTrue(summary.is_good())

    def test_says_why_a_test_was_skipped(self):
        self.assertIn("skipped 1: no GPU here", str(summary_of(PASSED, SKIPPED)))

    def test_names_failures_with_their_build(self):
        self.assertIn("failed: release: b", str(summary_of(FAILED)))

    def test_lets_only_gpu_tests_skip_when_strict(self):
        self.assertTrue(summary_of(PASSED, SKIPPED).is_good())
        self.assertFalse(summary_of(PASSED, SKIPPED, strict=True).is_good())
        self.assertTrue(summary_of(PASSED, SKIPPED, strict=True, labels={"e": ["gpu"]}).is_good())

    def test_is_not_good_when_nothing_passed(self):
        self.assertFalse(summary_of().is_good())


if __name__ == "__main__":
    unittest.main()
