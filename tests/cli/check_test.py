# SPDX-License-Identifier: AGPL-3.0-only
"""`check`: every operation in every combination, on worlds of one to three."""

import re
import unittest

from tool import run

OPERATIONS = (
    "all_reduce",
    "reduce",
    "broadcast",
    "all_gather",
    "reduce_scatter",
    "send_recv",
    "all_to_all",
)
LINE = re.compile(r"^(\w+) +(\d+) passed, (\d+) failed, (\d+) not supported")


class Check(unittest.TestCase):
    def check(self, ranks):
        result = run("check", "--runtime", "host", "--ranks", str(ranks), timeout=100)
        self.assertEqual((result.code, result.err), (0, ""), result.out)
        verdicts = [match.groups() for match in map(LINE.match, result.out.splitlines()) if match]
        self.assertEqual([verdict[0] for verdict in verdicts], list(OPERATIONS))
        for _, passed, failed, _ in verdicts:
            self.assertGreater(int(passed), 0)
            self.assertEqual(int(failed), 0)
        self.assertTrue(result.out.endswith("result: ok\n"))

    def test_world_1(self):
        self.check(1)

    def test_world_2(self):
        self.check(2)

    def test_world_3(self):
        self.check(3)


if __name__ == "__main__":
    unittest.main()
