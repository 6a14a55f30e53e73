#!/usr/bin/env python3
# SPDX-License-Identifier: AGPL-3.0-only
"""Adds up what CTest wrote for one or more build folders and ends with one line of counts.

Each folder holds junit.xml of its last run. A test that did not run is a failure, unless it skipped
itself; with CI=true it may do that only under the label gpu.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as xml
from collections import Counter


def labels_of(build):
    """Labels by test name; JUnit files have no room for them."""
    listing = subprocess.run(
        ["ctest", "--test-dir", str(build), "--show-only=json-v1"], capture_output=True, check=True
    )
    return {
        test["name"]: next((p["value"] for p in test["properties"] if p["name"] == "LABELS"), [])
        for test in json.loads(listing.stdout)["tests"]
    }


def outcome_of(case):
    skipped = case.find("skipped")
    if skipped is not None and skipped.get("message", "").startswith("SKIP_"):
        return "skipped"
    return "passed" if case.get("status") == "run" else "failed"


def reason_of(output):
    """What the test said: the line after GoogleTest's "Skipped", else the last line."""
    said = re.search(r": Skipped\n(.+)", output)
    lines = output.strip().splitlines()
    return (said.group(1) if said else lines[-1] if lines else "no reason given").strip()


class Summary:
    """Counts, reasons of skips and names of failures over any number of runs."""

    def __init__(self, strict):
        self.strict = strict
        self.counts, self.reasons, self.failures = Counter(), Counter(), []

    def add(self, build_name, cases, labels):
        for case in cases:
            name, outcome = case.get("name"), outcome_of(case)
            if outcome == "skipped":
                self.reasons[reason_of(case.findtext("system-out", ""))] += 1
                if self.strict and "gpu" not in labels.get(name, []):
                    outcome = "failed"
                    name += " (skipped, and is not a GPU test)"
            if outcome == "failed":
                self.failures.append(f"{build_name}: {name}")
            self.counts[outcome] += 1

    def __str__(self):
        lines = [f"skipped {count}: {reason}" for reason, count in sorted(self.reasons.items())]
        lines += [f"failed: {failure}" for failure in self.failures]
        lines.append(", ".join(f"{self.counts[o]} {o}" for o in ("passed", "failed", "skipped")))
        return "\n".join(lines)

    def is_good(self):
        return self.counts["passed"] > 0 and not self.failures


def main(builds):
    summary = Summary(strict=os.environ.get("CI") == "true")
    for build in map(pathlib.Path, builds):
        cases = xml.parse(build / "junit.xml").getroot().iter("testcase")
        summary.add(build.name, cases, labels_of(build))
    print(summary)
    return 0 if summary.is_good() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
