# SPDX-License-Identifier: AGPL-3.0-only
"""The library's errors as one exception: who, what, where, and what to do next."""

from ctypes import byref

from spark_comm import _native


class Error(Exception):
    """`str()` is the library's line. `code` and `recovery` are short names ("peer_lost", "reconnect"),
    `peers` the ranks that are missing, lost, behind or in disagreement."""

    def __init__(self, line, code, recovery="fix_call", operation="", rank=None, peers=(), native=None):
        super().__init__(line)
        self.code = code
        self.recovery = recovery
        self.operation = operation
        self.rank = rank
        self.peers = list(peers)
        self.native = native  # number and text of the vendor's, or None

    @classmethod
    def taken(cls, code, handle):
        """The exception of an error object, which is destroyed. `handle` is null if memory ran out."""
        name = _native.function("code_name")(code).decode()
        try:
            line = _native.function("error_line")(handle).decode(errors="replace")
            details = _native.struct(_native.ErrorDetails)
            if not handle or _native.function("error_describe")(handle, byref(details)) != 0:
                return cls(line, name, "retry")
            return cls(
                line,
                name,
                _native.function("recovery_name")(details.recovery).decode(),
                details.operation.decode(),
                details.rank if details.rank >= 0 else None,
                details.peers[: details.peer_count],
                (details.native_number, details.native_text.decode(errors="replace"))
                if details.native_domain
                else None,
            )
        finally:
            _native.function("error_destroy")(handle)
