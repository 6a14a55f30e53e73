# SPDX-License-Identifier: AGPL-3.0-only
"""spark_comm from Python, over its C interface: no dependency but the library.

    import spark_comm
    with spark_comm.Runtime() as runtime, spark_comm.join(runtime) as comm:
        comm.all_reduce(x, count, "fp32", "sum", stream)

A buffer is a `DeviceBuffer`, an address, or anything with `data_ptr()`, such as a tensor; a stream is a
`Stream`, a native handle as a number, or anything with `cuda_stream`. Times are seconds.
"""

from spark_comm.communicator import Communicator, DeviceBuffer, Stream, join
from spark_comm.errors import Error
from spark_comm.runtime import Runtime

__all__ = ["Communicator", "DeviceBuffer", "Error", "Runtime", "Stream", "join"]
