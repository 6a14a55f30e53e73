# SPDX-License-Identifier: AGPL-3.0-only
"""Whatever cannot be followed: one line on stderr that names what is accepted, exit code 2."""

import unittest

from tool import run

REFUSED = [
    ([], "accepted are bench, check, info, doctor, launch, trace, demo, tune, help"),
    (["dance"], "accepted are bench, check, info, doctor, launch, trace, demo, tune, help"),
    (["--fast"], "accepted are bench, check, info, doctor, launch, trace, demo, tune, help"),
    (["bench"], "operation"),
    (["bench", "all-reduce"], "all_reduce, reduce, broadcast, all_gather, reduce_scatter"),
    (["bench", "all_reduce", "--speed"], "--min, --max, --factor"),
    (["bench", "all_reduce", "--min", "1.5M"], "8, 4K, 1M, 2G"),
    (["bench", "all_reduce", "--max", "4"], "smaller than --min"),
    (["bench", "all_reduce", "--dtype", "fp4"], "bf16"),
    (["bench", "all_reduce", "--op", "xor"], "sum, prod, max, min, avg"),
    (["bench", "all_reduce", "--dtype", "bytes"], "moved, never reduced"),
    (["bench", "all_reduce", "--runtime", "amd"], "auto, nvidia, host"),
    (["bench", "broadcast", "--root", "2"], "0 to 1 with 2 ranks"),
    (["bench", "all_reduce", "--ranks", "0"], "1 to 64"),
    (["bench", "all_reduce", "--deadline", "soon"], "30s, 500ms, 2m"),
    (["check", "--ranks", "99"], "1 to 64"),
    (["info", "--yaml"], "--runtime, --nccl, --json"),
    (["help", "dance"], "bench, check, info, doctor, launch, trace, demo, tune, help"),
    (["rank", "bench", "all_reduce"], "start themselves"),
]


class Usage(unittest.TestCase):
    def test_refused_command_lines(self):
        for arguments, accepted in REFUSED:
            with self.subTest(arguments=arguments):
                result = run(*arguments)
                self.assertEqual(result.code, 2, result.err)
                self.assertEqual(result.out, "")
                self.assertTrue(result.err.startswith("spark-comm: "), result.err)
                self.assertEqual(result.err.count("\n"), 1, result.err)
                self.assertIn(accepted, result.err)

    def test_help_and_version(self):
        for arguments in (["help"], ["--help"], ["help", "bench"], ["bench", "--help"], ["--version"]):
            with self.subTest(arguments=arguments):
                result = run(*arguments)
                self.assertEqual((result.code, result.err), (0, ""))
        for verb in ("bench", "check", "info", "help"):
            self.assertIn(verb, run("help").out)
        self.assertNotIn("rank ", run("help").out)
        self.assertRegex(run("--version").out, r"^spark-comm \d+\.\d+\.\d+ \(\w+\)\n$")


if __name__ == "__main__":
    unittest.main()
