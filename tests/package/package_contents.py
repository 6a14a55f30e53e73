#!/usr/bin/env python3
# SPDX-License-Identifier: AGPL-3.0-only
"""package_contents.py BUILD: the Debian package in BUILD holds what it should, and says what it needs."""

import pathlib
import re
import subprocess
import sys

LIBRARY = r"usr/lib/[\w-]+"
WANTED = [
    rf"{LIBRARY}/libspark_comm\.so\.\d+\.\d+\.\d+",
    rf"{LIBRARY}/libspark_comm\.so\.\d+\.\d+ -> ",
    rf"{LIBRARY}/libspark_comm\.so -> ",
    rf"{LIBRARY}/libspark_comm_host\.so",
    rf"{LIBRARY}/pkgconfig/spark_comm\.pc",
    rf"{LIBRARY}/cmake/spark_comm/spark_comm-config\.cmake",
    r"usr/bin/spark-comm",
    r"usr/include/spark_comm/spark_comm\.hpp",
    r"usr/include/spark_comm/spark_comm\.h",
    r"usr/include/spark_comm/c/collectives\.h",
    r"usr/share/man/man1/spark-comm\.1",
    r"usr/share/bash-completion/completions/spark-comm",
    r"usr/lib/python3/dist-packages/spark_comm/__init__\.py",
]
UNWANTED = [r"/detail/(boundary|communicator_core)", r"\.pyc$", r"usr/lib/[\w-]+/lib.*\.a$"]
FIELDS = {"Package": r"spark-comm$", "Version": r"\d+\.\d+\.\d+", "Depends": r".*libssl3.*libstdc\+\+6"}
PRIVATE = r"libspark|libcuda|libnccl"


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def problems(package):
    names = [line.split(maxsplit=5)[5].removeprefix("./") for line in output_of("dpkg-deb", "-c", package).splitlines()]
    for pattern in WANTED:
        if not any(re.match(pattern, name) for name in names):
            yield f"has no {pattern}"
    for pattern in UNWANTED:
        yield from (f"has {name}" for name in names if re.search(pattern, name))
    fields = dict(
        line.split(": ", 1) for line in output_of("dpkg-deb", "-f", package).splitlines() if ": " in line
    )
    for field, pattern in FIELDS.items():
        if not re.match(pattern, fields.get(field, "")):
            yield f"{field} is {fields.get(field)}"
    if found := re.search(PRIVATE, fields.get("Depends", "")):
        yield f"depends on {found.group(0)}"
    verbs = {name for name in names if re.match(r"usr/share/man/man1/spark-comm-\w+\.1", name)}
    if len(verbs) < 5:
        yield f"has manual pages of {len(verbs)} verbs only"


def main():
    packages = list(pathlib.Path(sys.argv[1]).glob("*.deb"))
    if len(packages) != 1:
        print(f"{len(packages)} packages instead of one")
        return 1
    found = list(problems(packages[0]))
    print("\n".join(found) or f"{packages[0].name}: complete")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
