# SPDX-License-Identifier: AGPL-3.0-only
"""Communicators with their operations, and the memory and streams that small programs need."""

import contextlib
from ctypes import byref, c_int32, c_void_p

from spark_comm import _native
from spark_comm.errors import Error

DTYPES = {
    "int8": 0, "uint8": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5, "fp16": 6, "fp32": 7,
    "fp64": 8, "bf16": 9, "fp8_e4m3": 10, "fp8_e5m2": 11, "bytes": 255,
}
OPS = {"sum": 0, "prod": 1, "max": 2, "min": 3, "avg": 4}
DONE = 1


def _address(buffer):
    if isinstance(buffer, DeviceBuffer):
        return buffer.address
    return buffer.data_ptr() if hasattr(buffer, "data_ptr") else buffer


def _stream(stream):
    if isinstance(stream, Stream):
        return stream.native
    return getattr(stream, "cuda_stream", stream)


def _options(deadline):
    if deadline is None:
        return None
    return byref(_native.struct(_native.CallOptions, deadline_ns=_native.nanoseconds(deadline)))


class Stream(_native.Owner):
    """Work in order on the device of a communicator."""

    _destroy = "stream_destroy"

    def __init__(self, comm):
        super().__init__(_native.made("stream_create", comm.device))

    @property
    def native(self):
        return _native.function("stream_native")(self.handle)


class DeviceBuffer(_native.Owner):
    """Device memory."""

    _destroy = "device_buffer_destroy"

    def __init__(self, comm, size):
        super().__init__(_native.made("device_buffer_allocate", comm.device, size))
        self.size = size
        self._comm = comm

    @property
    def address(self):
        return _native.function("device_buffer_address")(self.handle)

    def write(self, data, stream):
        """Copies a writable buffer of host memory here; it must live until the stream is done."""
        self._copy(self.address, _host_address(data, self.size), stream)

    def read(self, data, stream):
        """Copies what is here to a writable buffer of host memory; the same."""
        self._copy(_host_address(data, self.size), self.address, stream)

    def _copy(self, to, source, stream):
        _native.call("copy_async", self._comm.device, to, source, self.size, _stream(stream))


def _host_address(data, size):
    view = memoryview(data)
    if view.nbytes != size:
        raise ValueError(f"{view.nbytes} bytes for a buffer of {size}")
    return byref((_native.ctypes.c_char * size).from_buffer(data))


class Communicator(_native.Owner):
    """This process's place in a group of ranks; made by `join`. `abort` and `state` may be used from
    any thread, the rest by one at a time. Leaving its `with` closes it, or aborts it after an error."""

    _destroy = "communicator_destroy"

    def _int(self, name):
        return _native.function(f"communicator_{name}")(self.handle)

    @property
    def rank(self):
        return self._int("rank")

    @property
    def world_size(self):
        return self._int("world_size")

    @property
    def generation(self):
        return self._int("generation")

    @property
    def device(self):
        return self._int("device")

    @property
    def state(self):
        return _native.function("state_name")(self._int("state")).decode()

    @property
    def last_error(self):
        """The first error that broke it, or None."""
        failure = c_void_p(self._int("last_error"))
        if not failure:
            return None
        details = _native.struct(_native.ErrorDetails)
        _native.function("error_describe")(failure, byref(details))
        return Error.taken(details.code, failure)

    def wait(self, stream, limit):
        """Whether all work on the stream was over within the limit."""
        progress = c_int32()
        limit_ns = _native.nanoseconds(limit)
        _native.call("communicator_wait", self.handle, _stream(stream), limit_ns, byref(progress))
        return progress.value == DONE

    def barrier(self, limit):
        _native.call("barrier", self.handle, _native.nanoseconds(limit))

    def close(self, limit):
        _native.call("communicator_close", self.handle, _native.nanoseconds(limit))

    def abort(self):
        _native.function("communicator_abort")(self.handle)

    @contextlib.contextmanager
    def group(self):
        """Operations inside are launched together when the block ends, and not at all if it raises."""
        group = _native.made("group_begin", self.handle)
        try:
            yield
        except BaseException:
            _native.function("group_drop")(group)
            raise
        _native.call("group_commit", group)

    def all_reduce(self, source, count, dtype, op, stream, out=None, deadline=None):
        self._collective("all_reduce", source, out, count, dtype, OPS[op], stream=stream, deadline=deadline)

    def reduce(self, source, count, dtype, op, root, stream, out=None, deadline=None):
        self._collective(
            "reduce", source, out, count, dtype, OPS[op], root, stream=stream, deadline=deadline
        )

    def broadcast(self, source, count, dtype, root, stream, out=None, deadline=None):
        self._collective("broadcast", source, out, count, dtype, root, stream=stream, deadline=deadline)

    def all_gather(self, source, out, count, dtype, stream, deadline=None):
        self._collective("all_gather", source, out, count, dtype, stream=stream, deadline=deadline)

    def reduce_scatter(self, source, out, count, dtype, op, stream, deadline=None):
        self._collective(
            "reduce_scatter", source, out, count, dtype, OPS[op], stream=stream, deadline=deadline
        )

    def all_to_all(self, source, out, count, dtype, stream, deadline=None):
        self._collective("all_to_all", source, out, count, dtype, stream=stream, deadline=deadline)

    def send(self, source, count, dtype, peer, stream, deadline=None):
        self._message("send", source, count, dtype, peer, stream, deadline)

    def recv(self, out, count, dtype, peer, stream, deadline=None):
        self._message("recv", out, count, dtype, peer, stream, deadline)

    def _collective(self, name, source, out, count, dtype, *numbers, stream, deadline):
        source = _address(source)
        out = source if out is None else _address(out)  # in place
        _native.call(
            name, self.handle, source, out, count, DTYPES[dtype], *numbers, _stream(stream), _options(deadline)
        )

    def _message(self, name, buffer, count, dtype, peer, stream, deadline):
        _native.call(
            name, self.handle, _address(buffer), count, DTYPES[dtype], peer, _stream(stream), _options(deadline)
        )

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is not None:
                self.abort()
            elif self.state == "ready":
                self.close(5.0)
        finally:
            self.destroy()


def join(runtime, address=None, rank=0, world_size=1, *, name=None, deadline=None, key_file=None,
         operation_deadline=None, device=None, share_device=False, record_directory=None):
    """Joins a world and returns its communicator. Without an address: from the launcher's environment."""
    place = None
    if address is not None:
        place = byref(_native.struct(
            _native.World, address=_native.text(address), rank=rank, world_size=world_size
        ))
    options = _native.struct(
        _native.JoinOptions,
        name=_native.text(name),
        deadline_ns=None if deadline is None else _native.nanoseconds(deadline),
        operation_deadline_ns=None if operation_deadline is None else _native.nanoseconds(operation_deadline),
        device=None if device is None else _native.Optional(device, 1),
        share_device=int(share_device),
        key_file=_native.text(key_file),
        record_directory=_native.text(record_directory),
    )
    return Communicator(_native.made("communicator_join", runtime.handle, place, byref(options)))
