#!/usr/bin/env python3
# SPDX-License-Identifier: AGPL-3.0-only
"""What it shows: the main job from Python. Every rank gives a vector, every rank gets the sum.

Needs:         libspark_comm.so, and bindings/python on PYTHONPATH unless the package is installed.
Run:           spark-comm launch -n 2 -- python3 all_reduce.py
Expected:      rank 0: [3.0, 3.0, 3.0, 3.0]
               rank 1: [3.0, 3.0, 3.0, 3.0]     (in either order)
Can go wrong:  a lost, late or diverging peer is a spark_comm.Error that names it.
"""

import array
import sys

import spark_comm


def main():
    with spark_comm.Runtime() as runtime, spark_comm.join(runtime, deadline=20) as comm:
        stream = spark_comm.Stream(comm)
        values = array.array("f", [comm.rank + 1] * 4)
        x = spark_comm.DeviceBuffer(comm, values.itemsize * len(values))

        x.write(values, stream)
        comm.all_reduce(x, len(values), "fp32", "sum", stream)
        x.read(values, stream)
        if not comm.wait(stream, limit=10):
            raise TimeoutError(f"rank {comm.rank}: no result after 10 s")
        print(f"rank {comm.rank}: {values.tolist()}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except spark_comm.Error as failure:
        sys.exit(str(failure))
