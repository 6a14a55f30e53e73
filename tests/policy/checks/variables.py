# SPDX-License-Identifier: AGPL-3.0-only
"""Every SPARK_COMM_ variable that the code reads is in the list that finds misspelt ones, and the
other way round.
"""

import re

LIST = "src/spark_comm/comm/environment_check.cpp"
READS = re.compile(r'"(SPARK_COMM_[A-Z0-9_]*[A-Z0-9])"')


def violations(tree):
    listed = set(READS.findall(tree.files.get(LIST, "")))
    read = {}
    for path, text in tree.matching(r"(src|app)/.*\.(cpp|hpp)"):
        for name in READS.findall(text) if path != LIST else ():
            read.setdefault(name, path)
    for name in sorted(read.keys() - listed):
        yield f"{read[name]}: {name} is not in the list of {LIST}"
    for name in sorted(listed - read.keys()):
        yield f"{LIST}: nothing reads {name}"
