# SPDX-License-Identifier: AGPL-3.0-only
"""The C interface as ctypes sees it: the loaded library, its structs, and one way to call it."""

import ctypes
import os
from ctypes import POINTER, byref, c_char_p, c_int32, c_int64, c_size_t, c_uint64, c_void_p

SONAME = "libspark_comm.so.0.1"


class Optional(ctypes.Structure):
    _fields_ = [("value", c_int64), ("is_set", c_int64)]


class World(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("address", c_char_p), ("rank", c_int32), ("world_size", c_int32),
    ]


class RuntimeOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("nccl_library", c_char_p), ("host_library", c_char_p),
        ("sink", c_void_p), ("sink_data", c_void_p),
    ]


class RuntimeInfo(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("kind", c_int32), ("nccl_version", c_int32),
        ("driver_version", c_int32), ("device_count", c_int32), ("nccl_file", c_char_p),
        ("nccl_build_id", c_char_p), ("driver_file", c_char_p), ("description", c_char_p),
    ]


class JoinOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("name", c_char_p), ("deadline_ns", c_int64),
        ("operation_deadline_ns", c_int64), ("abort_deadline_ns", c_int64), ("device", Optional),
        ("share_device", c_int32), ("supervision", c_int32), ("mismatch_check", c_int32),
        ("path_max_streams", c_int32), ("key", c_char_p), ("key_file", c_char_p),
        ("heartbeat_interval_ns", c_int64), ("silence_limit_ns", c_int64),
        ("record_directory", c_char_p), ("record_capacity", c_size_t),
        ("path_table_file", c_char_p), ("path_table", c_char_p), ("path_max_bytes", Optional),
        ("nccl_min_ctas", Optional), ("nccl_max_ctas", Optional),
        ("nccl_cga_cluster_size", Optional), ("nccl_traffic_class", Optional),
        ("nccl_channels_per_net_peer", Optional), ("nccl_net_name", c_char_p),
        ("on_listening", c_void_p), ("on_listening_data", c_void_p),
    ]


class CallOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("deadline_ns", c_int64)]


class ErrorDetails(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("code", c_int32), ("recovery", c_int32), ("message", c_char_p),
        ("communicator", c_char_p), ("operation", c_char_p), ("rank", c_int32),
        ("world_size", c_int32), ("device", c_int32), ("native_domain", c_int32),
        ("native_number", c_int64), ("native_function", c_char_p), ("native_text", c_char_p),
        ("sequence", Optional), ("count_elements", Optional), ("dtype", Optional),
        ("deadline_ns", Optional), ("peers", POINTER(c_int32)), ("peer_count", c_size_t),
        ("source_file", c_char_p), ("source_line", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
    ]


STRUCTS = {
    "spark_comm_optional": Optional,
    "spark_comm_world": World,
    "spark_comm_runtime_options": RuntimeOptions,
    "spark_comm_runtime_info": RuntimeInfo,
    "spark_comm_join_options": JoinOptions,
    "spark_comm_call_options": CallOptions,
    "spark_comm_error_details": ErrorDetails,
}

_P = c_void_p  # a handle, an address or a place for a handle
_COLLECTIVE = [_P, _P, _P, c_size_t, c_int32]  # communicator, in, out, count, dtype
_END = [_P, _P]  # options, failure

# name: (result, arguments) of every function that is used.
PROTOTYPES = {
    "version": (c_int32, []),
    "data_type_size": (c_size_t, [c_int32]),
    "code_name": (c_char_p, [c_int32]),
    "recovery_name": (c_char_p, [c_int32]),
    "state_name": (c_char_p, [c_int32]),
    "error_line": (c_char_p, [_P]),
    "error_describe": (c_int32, [_P, _P]),
    "error_destroy": (None, [_P]),
    "runtime_load": (c_int32, [c_int32, _P, _P, _P]),
    "runtime_describe": (c_int32, [_P, _P, _P]),
    "runtime_supports": (c_int32, [_P, c_int32]),
    "runtime_destroy": (None, [_P]),
    "stream_create": (c_int32, [_P, _P, _P]),
    "stream_native": (_P, [_P]),
    "stream_destroy": (None, [_P]),
    "device_buffer_allocate": (c_int32, [_P, c_size_t, _P, _P]),
    "device_buffer_address": (_P, [_P]),
    "device_buffer_destroy": (None, [_P]),
    "copy_async": (c_int32, [_P, _P, _P, c_size_t, _P, _P]),
    "communicator_join": (c_int32, [_P, _P, _P, _P, _P]),
    "communicator_rank": (c_int32, [_P]),
    "communicator_world_size": (c_int32, [_P]),
    "communicator_state": (c_int32, [_P]),
    "communicator_sequence": (c_uint64, [_P]),
    "communicator_generation": (c_uint64, [_P]),
    "communicator_device": (_P, [_P]),
    "communicator_last_error": (_P, [_P]),
    "communicator_wait": (c_int32, [_P, _P, c_int64, _P, _P]),
    "communicator_close": (c_int32, [_P, c_int64, _P]),
    "communicator_abort": (None, [_P]),
    "communicator_destroy": (None, [_P]),
    "all_reduce": (c_int32, [*_COLLECTIVE, c_int32, _P, *_END]),
    "reduce": (c_int32, [*_COLLECTIVE, c_int32, c_int32, _P, *_END]),
    "broadcast": (c_int32, [*_COLLECTIVE, c_int32, _P, *_END]),
    "all_gather": (c_int32, [*_COLLECTIVE, _P, *_END]),
    "reduce_scatter": (c_int32, [*_COLLECTIVE, c_int32, _P, *_END]),
    "all_to_all": (c_int32, [*_COLLECTIVE, _P, *_END]),
    "send": (c_int32, [_P, _P, c_size_t, c_int32, c_int32, _P, *_END]),
    "recv": (c_int32, [_P, _P, c_size_t, c_int32, c_int32, _P, *_END]),
    "barrier": (c_int32, [_P, c_int64, _P]),
    "group_begin": (c_int32, [_P, _P, _P]),
    "group_commit": (c_int32, [_P, _P]),
    "group_drop": (None, [_P]),
}


def load():
    """The library: SPARK_COMM_LIBRARY by path, else by its soname."""
    library = ctypes.CDLL(os.environ.get("SPARK_COMM_LIBRARY") or SONAME)
    for name, (result, arguments) in PROTOTYPES.items():
        function = getattr(library, f"spark_comm_{name}")
        function.restype, function.argtypes = result, arguments
    return library


LIBRARY = load()


def function(name):
    return getattr(LIBRARY, f"spark_comm_{name}")


def struct(kind, **fields):
    """A struct that knows its size; None leaves a field at its default."""
    return kind(ctypes.sizeof(kind), **{key: value for key, value in fields.items() if value is not None})


def nanoseconds(seconds):
    return round(seconds * 1e9)


def text(value):
    """A string or path for the library, None for None."""
    return None if value is None else os.fsencode(value)


def call(name, *arguments):
    """Calls a function whose last argument is the place for an error; raises that."""
    from spark_comm.errors import Error

    failure = c_void_p()
    code = function(name)(*arguments, byref(failure))
    if code != 0:
        raise Error.taken(code, failure)


def made(name, *arguments):
    """The handle that a function gives by its last but one argument."""
    handle = c_void_p()
    call(name, *arguments, byref(handle))
    return handle


class Owner:
    """Something with a handle that is destroyed once: at `destroy`, or when it goes."""

    _destroy = ""  # the name of the function

    def __init__(self, handle):
        self._handle = handle

    @property
    def handle(self):
        if self._handle is None:
            raise ValueError(f"this {type(self).__name__} was destroyed")
        return self._handle

    def destroy(self):
        handle, self._handle = getattr(self, "_handle", None), None
        if handle is not None:
            function(self._destroy)(handle)

    def __del__(self):
        self.destroy()
