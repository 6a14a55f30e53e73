# SPDX-License-Identifier: AGPL-3.0-only
"""`info`: what was loaded, in words and as JSON; what is missing, by name."""

import json
import unittest

from tool import run


class Info(unittest.TestCase):
    def test_text_on_the_host_runtime(self):
        result = run("info", "--runtime", "host")
        self.assertEqual((result.code, result.err), (0, ""))
        for part in ("No GPU is used.", "NCCL", "build id", "capabilities", "all_to_all", "devices"):
            self.assertIn(part, result.out)

    def test_json_on_the_host_runtime(self):
        result = run("info", "--runtime", "host", "--json", SPARK_COMM_HOST_DEVICES="3")
        self.assertEqual((result.code, result.err), (0, ""))
        facts = json.loads(result.out)
        self.assertEqual((facts["schema"], facts["schema_version"]), ("spark-comm/info", 1))
        self.assertEqual(facts["runtime"], "host")
        self.assertFalse(facts["uses_gpu"])
        self.assertIn("libspark_comm_host.so", facts["nccl"]["file"])
        self.assertRegex(facts["nccl"]["version"], r"^\d+\.\d+\.\d+$")
        self.assertEqual(len(facts["devices"]), 3)
        self.assertEqual(len({device["uuid"] for device in facts["devices"]}), 3)
        for device in facts["devices"]:
            self.assertGreater(device["total_bytes"], 0)
        names = {one["name"] for one in facts["capabilities"]}
        self.assertLessEqual({"window", "all_to_all", "revoke", "fp8"}, names)

    def test_a_library_that_is_not_there_is_named(self):
        result = run("info", "--runtime", "host", SPARK_COMM_HOST_LIBRARY="/no/such/host.so")
        self.assertEqual(result.code, 3, result.err)
        self.assertEqual(result.out, "")
        self.assertTrue(result.err.startswith("spark-comm: "))
        self.assertIn("/no/such/host.so", result.err)
        self.assertEqual(result.err.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
