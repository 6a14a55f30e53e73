#!/usr/bin/env python3
# SPDX-License-Identifier: AGPL-3.0-only
"""exported_symbols.py library|host FILE: what a shared library of ours shows to the outside.

Its soname carries major and minor version, it needs no CUDA and no NCCL, and it defines nothing but
its own names: the library's namespace, or the calls that the host runtime stands in for. Weak names
of the C++ runtime are let through: every C++ library has them, and the loader makes them one.
"""

import pathlib
import re
import subprocess
import sys

OWN = {
    "library": r"spark_comm_\w+$|(typeinfo (name )?for |vtable for |guard variable for |VTT for )?spark_comm::",
    "host": r"((nccl|pnccl|cu)[A-Z]\w*|spark_comm_host_\w+)$",
}
SONAME = {"library": r"libspark_comm\.so\.\d+\.\d+$", "host": r"libspark_comm_host\.so(\.[\d.]+)?$"}
STRONG = "TDBRGSi"  # weak and unique names are merged by the loader
CXX_RUNTIME = r"\bstd::|\b__gnu_cxx::"
THIRD_PARTY = r"\b(fmt|asio|hwy)::"


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def problems(kind, file):
    dynamic = output_of("readelf", "-d", file)
    soname = re.search(r"soname: \[(.*?)\]", dynamic)
    if not soname or not re.match(SONAME[kind], soname.group(1)):
        yield f"soname is {soname and soname.group(1)}"
    loaded = dynamic + output_of("ldd", file)
    for vendor in re.findall(r"lib(?:cuda|cudart|nccl)\b[\w.]*", loaded):
        yield f"needs {vendor}"
    for line in output_of("nm", "-D", "--defined-only", "--demangle", file).splitlines():
        _, letter, name = line.split(maxsplit=2)
        if re.match(OWN[kind], name):
            continue
        of_runtime = re.search(CXX_RUNTIME, name) and not re.search(THIRD_PARTY, name)
        if letter in STRONG or not of_runtime:
            yield f"exports {letter} {name}"


def main():
    kind, file = sys.argv[1], pathlib.Path(sys.argv[2])
    found = list(problems(kind, file))
    print("\n".join(found) or f"{file.name}: exports its own names only")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
