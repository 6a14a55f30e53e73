#!/usr/bin/env python3
# SPDX-License-Identifier: AGPL-3.0-only
"""c_abi.py --compiler CC [--library FILE] [--update]: the C interface is what abi.txt says.

abi.txt lists every function with its types, every number, and every struct with the offset and size of
its fields, as the C compiler has them. A change to it is a change for programs that are already built:
fields and numbers may be added at an end, with a new minor version before 1.0 for anything else. With a
library, its exported C names are compared as well. --update writes the file anew.
"""

import argparse
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = ROOT / "src/spark_comm/c"
LISTING = HEADERS / "abi.txt"
API = r"SPARK_COMM_C_(?:API|CHECKED)\s+"


def plain(text):
    """The declarations without comments and preprocessor lines."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
    return re.sub(r"^[ \t]*#.*$", "", text, flags=re.MULTILINE)


def one_line(text):
    text = re.sub(r"\s+", " ", text).strip()
    return text.replace("( ", "(").replace(" )", ")")


class Interface:
    """What the headers declare."""

    def __init__(self, headers):
        text = "\n".join(plain(path.read_text()) for path in sorted(headers))
        self.functions = sorted(
            one_line(found) for found in re.findall(API + r"([^;{]+?)\s*;", text)
        )
        self.numbers = re.findall(r"\b(SPARK_COMM_\w+)\s*=\s*-?\d+", text)
        self.types = sorted(
            one_line(found) for found in re.findall(r"\btypedef\s+([^;{}]+);", text)
        )
        self.structs = {
            name: fields_of(body)
            for name, body in re.findall(r"\btypedef struct (\w+) \{(.*?)\}", text, re.DOTALL)
        }

    def names(self):
        return {re.search(r"(\w+)\(", function).group(1) for function in self.functions}


def fields_of(body):
    """(name, declaration) of each field, in order."""
    fields = []
    for declaration in filter(None, (one_line(part) for part in body.split(";"))):
        function = re.search(r"\(\*(\w+)\)", declaration)
        name = function or re.search(r"(\w+)(?:\[\w+\])?$", declaration)
        fields.append((name.group(1), declaration))
    return fields


def program_for(interface):
    """A C program that prints what only the compiler knows, one line each."""
    lines = []
    for number in interface.numbers:
        lines.append(f'printf("number {number} %d\\n", {number});')
    for struct, fields in sorted(interface.structs.items()):
        lines.append(f'printf("struct {struct} %zu\\n", sizeof({struct}));')
        for name, declaration in fields:
            size = f"sizeof((({struct}*)0)->{name})"
            lines.append(
                f'printf("  %zu %zu {declaration}\\n", offsetof({struct}, {name}), {size});'
            )
    body = "\n  ".join(lines)
    return f"#include <spark_comm/spark_comm.h>\n#include <stdio.h>\nint main(void) {{\n  {body}\n}}\n"


def layout_of(interface, compiler):
    with tempfile.TemporaryDirectory() as folder:
        source, binary = pathlib.Path(folder, "layout.c"), pathlib.Path(folder, "layout")
        source.write_text(program_for(interface))
        subprocess.run(
            [compiler, "-std=c99", f"-I{ROOT / 'src'}", source, "-o", binary], check=True
        )
        return subprocess.run([binary], check=True, capture_output=True, text=True).stdout


def listing(compiler, headers):
    interface = Interface(headers)
    lines = [f"function {each}" for each in interface.functions]
    lines += [f"type {each}" for each in interface.types]
    return "\n".join(lines) + "\n" + layout_of(interface, compiler)


def missing_or_extra(library, headers):
    """C names that the library exports and no header declares, and the other way round."""
    output = subprocess.run(
        ["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True
    ).stdout
    exported = set(re.findall(r"^\S+ \S (spark_comm_\w+)", output, re.MULTILINE))
    declared = Interface(headers).names()
    yield from (f"{name}: declared, not exported" for name in sorted(declared - exported))
    yield from (f"{name}: exported, not declared" for name in sorted(exported - declared))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", default="cc")
    parser.add_argument("--library")
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()

    headers = list(HEADERS.glob("*.h"))
    now = listing(arguments.compiler, headers)
    if arguments.update:
        LISTING.write_text(now)
    before = LISTING.read_text()
    problems = [
        line
        for line in difflib.unified_diff(
            before.splitlines(), now.splitlines(), "abi.txt", "the headers", n=1, lineterm=""
        )
    ]
    if arguments.library:
        problems += missing_or_extra(arguments.library, headers)
    print("\n".join(problems) or "the C interface is what abi.txt says")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
