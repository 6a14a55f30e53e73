# SPDX-License-Identifier: AGPL-3.0-only
"""Which driver and NCCL a program runs on."""

from ctypes import byref

from spark_comm import _native

KINDS = {"automatic": 0, "nvidia": 1, "host": 2}


class Runtime(_native.Owner):
    """A loaded runtime. A context manager, like everything here that has to end."""

    _destroy = "runtime_destroy"

    def __init__(self, kind="automatic", nccl_library=None, host_library=None):
        options = _native.struct(
            _native.RuntimeOptions,
            nccl_library=_native.text(nccl_library),
            host_library=_native.text(host_library),
        )
        super().__init__(_native.made("runtime_load", KINDS[kind], byref(options)))

    @property
    def info(self):
        """A dict: kind, versions, files, number of devices, and a line that says all of it."""
        info = _native.struct(_native.RuntimeInfo)
        _native.call("runtime_describe", self.handle, byref(info))
        names = [name for name, _ in info._fields_[1:]]
        values = {name: getattr(info, name) for name in names}
        return {key: value.decode() if isinstance(value, bytes) else value for key, value in values.items()}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.destroy()
