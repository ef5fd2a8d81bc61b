"""A connection to a daemon."""

import ctypes
import errno
import json
import os
from types import TracebackType
from typing import Any, Dict, Mapping, Optional, Tuple, Type, Union

from ._library import Error, call, library
from ._list import List, read_list

_ONLY_DEVICE = -1
_SWAP_OUT = 1
_NO_WAIT = 2


class Client:
    """A connection to a running allotd; a context manager, which closes it.

    run_dir: the daemon of this run directory; without it the one that `allot ps` asks, the system's first,
    else the caller's own. simulated: that of the simulated GPU which `allot run --sim` was given.
    """

    def __init__(self, run_dir: Union[str, "os.PathLike[str]", None] = None, *, simulated: Optional[str] = None) -> None:
        self._handle: Optional[ctypes.c_void_p] = None
        handle = ctypes.c_void_p()
        call("allot_client_open", os.fsencode(run_dir) if run_dir is not None else None,
             simulated.encode() if simulated is not None else None, ctypes.byref(handle))
        self._handle = handle

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection; a second time does nothing."""
        handle, self._handle = getattr(self, "_handle", None), None
        if handle is not None:
            library().allot_client_close(handle)

    def _open(self) -> ctypes.c_void_p:
        if self._handle is None:
            raise ValueError("this client is closed")
        return self._handle

    def fileno(self) -> int:
        """Readable or hung up when the daemon has gone, for select()."""
        return int(library().allot_client_fd(self._open()))

    @property
    def daemon(self) -> str:
        """The daemon's name and version: "allotd 0.1.0"."""
        return str(library().allot_client_daemon(self._open()), "utf-8")

    def list(self) -> List:
        """All devices and tenants, of one moment."""
        handle = ctypes.c_void_p()
        call("allot_client_list", self._open(), ctypes.byref(handle))
        try:
            return read_list(handle.value or 0)
        finally:
            library().allot_list_free(handle)

    def set(self, tenant: str, *, device: Optional[int] = None, memory_bytes: Optional[int] = None,
            memory_rest: bool = False, cores_pct: Optional[float] = None, cores_limit_pct: Optional[float] = None,
            priority: Optional[int] = None, elastic: Optional[bool] = None) -> Tuple[str, ...]:
        """Changes what a tenant may have, all of it or nothing; what is not named stays.

        device: the daemon's index of it; needed where the tenant has several. memory_rest: what others were
        not promised, in place of a quota. Returns what the daemon warns of. ValueError for a value that no
        daemon would take.
        """
        if memory_rest and memory_bytes is not None:
            raise ValueError("memory_bytes: not beside memory_rest")
        index = _ONLY_DEVICE if device is None else device
        change = library().allot_change_new()
        if not change:
            raise MemoryError
        try:
            for field, arguments in (
                    ("memory_bytes", None if memory_bytes is None else (index, memory_bytes)),
                    ("memory_rest", (index,) if memory_rest else None),
                    ("cores_pct", None if cores_pct is None else (index, cores_pct)),
                    ("cores_limit_pct", None if cores_limit_pct is None else (index, cores_limit_pct)),
                    ("priority", None if priority is None else (priority,)),
                    ("elastic", None if elastic is None else (int(elastic),))):
                if arguments is not None:
                    _gather(change, field, arguments)
            call("allot_client_set", self._open(), tenant.encode(), change)
        finally:
            library().allot_change_free(change)
        return tuple(library().allot_client_warnings(self._open()).decode().splitlines())

    def pause(self, tenant: str, *, swap_out: bool = False, wait: bool = True) -> None:
        """Lets a tenant start no more work; with swap_out its memory leaves the devices too, which is waited for."""
        flags = (_SWAP_OUT if swap_out else 0) | (0 if wait else _NO_WAIT)
        call("allot_client_pause", self._open(), tenant.encode(), flags)

    def resume(self, tenant: str) -> None:
        """Lets a paused tenant go on; returns when memory that was checkpointed is back."""
        call("allot_client_resume", self._open(), tenant.encode())

    def request(self, op: str, members: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
        """Any request of docs/reference/protocol.md, and its whole reply."""
        reply = ctypes.c_void_p()
        call("allot_client_request", self._open(), op.encode(), json.dumps(dict(members or {})).encode(),
             ctypes.byref(reply))
        try:
            whole: Dict[str, Any] = json.loads(ctypes.string_at(reply.value or 0))
            return whole
        finally:
            library().allot_free(reply)


def _gather(change: int, field: str, arguments: Tuple[Any, ...]) -> None:
    for value, bits in zip(reversed(arguments), (63 if field == "memory_bytes" else 31, 31)):
        # ctypes would cut a number that does not fit.
        if isinstance(value, int) and not -1 << bits <= value < 1 << bits:
            raise ValueError(f"{field}: {value}: out of range")
    r = getattr(library(), f"allot_change_{field}")(change, *arguments)
    if r == -errno.ENOMEM:
        raise MemoryError
    if r < 0:
        raise ValueError(f"{field}: {arguments[-1]}: out of range")


__all__ = ["Client", "Error"]
