#!/usr/bin/env python3
# SPDX-License-Identifier: AGPL-3.0-only
"""The Python package, on a world of one on the host runtime, and against the listing of the C interface."""

import array
import ctypes
import pathlib
import re
import unittest

import spark_comm
from spark_comm import _native

LISTING = pathlib.Path(__file__).resolve().parents[2] / "src/spark_comm/c/abi.txt"


class Declarations(unittest.TestCase):
    """ctypes checks nothing by itself."""

    text = LISTING.read_text()

    def test_functions_have_as_many_arguments_as_in_c(self):
        for name, (_, arguments) in _native.PROTOTYPES.items():
            found = re.search(rf"^function .*\bspark_comm_{name}\((.*)\)$", self.text, re.MULTILINE)
            self.assertIsNotNone(found, name)
            declared = [] if found.group(1) == "void" else found.group(1).split(", ")
            self.assertEqual(len(arguments), len(declared), name)

    def test_structs_have_the_layout_of_c(self):
        for name, kind in _native.STRUCTS.items():
            block = re.search(rf"^struct {name} (\d+)\n((?:  .*\n)*)", self.text, re.MULTILINE)
            self.assertIsNotNone(block, name)
            self.assertEqual(ctypes.sizeof(kind), int(block.group(1)), name)
            offsets = [int(line.split()[0]) for line in block.group(2).splitlines()]
            mine = [getattr(kind, field).offset for field, *_ in kind._fields_]
            self.assertEqual(mine, offsets, name)


class WorldOfOne(unittest.TestCase):
    def setUp(self):
        self.runtime = spark_comm.Runtime("host")
        self.comm = spark_comm.join(self.runtime, address="127.0.0.1:1", name="py")
        self.stream = spark_comm.Stream(self.comm)

    def tearDown(self):
        self.comm.close(5)
        self.comm.destroy()

    def buffer(self, values):
        made = spark_comm.DeviceBuffer(self.comm, values.itemsize * len(values))
        made.write(values, self.stream)
        return made

    def test_knows_runtime_and_place(self):
        self.assertEqual(self.runtime.info["kind"], 2)
        self.assertIn("host", self.runtime.info["description"])
        self.assertEqual((self.comm.rank, self.comm.world_size), (0, 1))
        self.assertEqual((self.comm.state, self.comm.generation), ("ready", 1))
        self.assertIsNone(self.comm.last_error)

    def test_moves_data(self):
        values = array.array("i", [1, 2, 3])
        source, out = self.buffer(values), self.buffer(array.array("i", [0, 0, 0]))
        self.comm.all_gather(source, out, 3, "int32", self.stream)
        got = array.array("i", [0, 0, 0])
        out.read(got, self.stream)
        self.assertTrue(self.comm.wait(self.stream, 5))
        self.assertEqual(got, values)

    def test_an_error_has_what_the_library_knows(self):
        with self.assertRaises(spark_comm.Error) as raised:
            self.comm.all_reduce(8, 4, "bytes", "sum", self.stream)
        self.assertEqual(raised.exception.code, "invalid_argument")
        self.assertEqual(raised.exception.recovery, "fix_call")
        self.assertEqual(raised.exception.operation, "all_reduce")
        self.assertIn("opaque bytes", str(raised.exception))
        self.assertEqual(self.comm.state, "ready")

    def test_a_group_that_raises_launches_nothing(self):
        values = array.array("i", [5])
        source, out = self.buffer(values), self.buffer(array.array("i", [0]))
        with self.assertRaises(KeyError), self.comm.group():
            self.comm.all_gather(source, out, 1, "int32", self.stream)
            self.comm.all_gather(source, out, 1, "no type", self.stream)
        with self.comm.group():
            self.comm.all_gather(source, out, 1, "int32", self.stream)
        self.assertTrue(self.comm.wait(self.stream, 5))

    def test_what_was_destroyed_says_so(self):
        buffer = self.buffer(array.array("i", [1]))
        buffer.destroy()
        buffer.destroy()
        with self.assertRaisesRegex(ValueError, "DeviceBuffer was destroyed"):
            self.comm.all_reduce(buffer, 1, "int32", "sum", self.stream)

    def test_a_runtime_that_is_not_there_is_an_error(self):
        with self.assertRaisesRegex(spark_comm.Error, "/nowhere"):
            spark_comm.Runtime("host", host_library="/nowhere/lib.so")


if __name__ == "__main__":
    unittest.main()
