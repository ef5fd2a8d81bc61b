"""liballot-client.so.0 as ctypes sees it: a row a function, with its types as in allot-client.h."""

import ctypes
import os
from typing import Optional

ERROR_TEXT_MAX = 512


class ErrorStruct(ctypes.Structure):
    """struct allot_error"""

    _fields_ = [("code", ctypes.c_int), ("text", ctypes.c_char * ERROR_TEXT_MAX)]


class Error(OSError):
    """What the daemon refused, or why it could not be asked: `errno`, and in `strerror` one line."""


_POINTER, _TEXT, _WHOLE, _REAL, _INT = (
    ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_double, ctypes.c_int)
_ERROR = ctypes.POINTER(ErrorStruct)
_RET_POINTER = ctypes.POINTER(ctypes.c_void_p)

# result, then parameters; without a result: None
_FUNCTIONS = {
    "allot_client_version": (_TEXT,),
    "allot_client_open": (_INT, _TEXT, _TEXT, _RET_POINTER, _ERROR),
    "allot_client_close": (None, _POINTER),
    "allot_client_daemon": (_TEXT, _POINTER),
    "allot_client_fd": (_INT, _POINTER),
    "allot_client_list": (_INT, _POINTER, _RET_POINTER, _ERROR),
    "allot_client_set": (_INT, _POINTER, _TEXT, _POINTER, _ERROR),
    "allot_client_warnings": (_TEXT, _POINTER),
    "allot_client_pause": (_INT, _POINTER, _TEXT, ctypes.c_uint, _ERROR),
    "allot_client_resume": (_INT, _POINTER, _TEXT, _ERROR),
    "allot_client_request": (_INT, _POINTER, _TEXT, _TEXT, _RET_POINTER, _ERROR),
    "allot_free": (None, _POINTER),
    "allot_list_free": (None, _POINTER),
    "allot_list_json": (_TEXT, _POINTER),
    "allot_list_device_count": (ctypes.c_size_t, _POINTER),
    "allot_list_device": (_POINTER, _POINTER, ctypes.c_size_t),
    "allot_list_tenant_count": (ctypes.c_size_t, _POINTER),
    "allot_list_tenant": (_POINTER, _POINTER, ctypes.c_size_t),
    "allot_device_index": (_INT, _POINTER),
    "allot_device_uuid": (_TEXT, _POINTER),
    "allot_device_name": (_TEXT, _POINTER),
    "allot_device_memory_bytes": (_WHOLE, _POINTER),
    "allot_device_memory_used_bytes": (_INT, _POINTER, ctypes.POINTER(_WHOLE)),
    "allot_device_busy_pct": (_REAL, _POINTER),
    "allot_device_promised_bytes": (_WHOLE, _POINTER),
    "allot_device_promised_cores_pct": (_REAL, _POINTER),
    "allot_device_fault": (_TEXT, _POINTER),
    "allot_device_is_cordoned": (_INT, _POINTER),
    "allot_tenant_name": (_TEXT, _POINTER),
    "allot_tenant_id": (_TEXT, _POINTER),
    "allot_tenant_state": (_TEXT, _POINTER),
    "allot_tenant_uid": (ctypes.c_uint32, _POINTER),
    "allot_tenant_priority": (_INT, _POINTER),
    "allot_tenant_share_count": (ctypes.c_size_t, _POINTER),
    "allot_tenant_share": (_POINTER, _POINTER, ctypes.c_size_t),
    "allot_share_device_index": (_INT, _POINTER),
    "allot_share_memory_quota_bytes": (_WHOLE, _POINTER),
    "allot_share_memory_is_given": (_INT, _POINTER),
    "allot_share_memory_used_bytes": (_WHOLE, _POINTER),
    "allot_share_cores_pct": (_REAL, _POINTER),
    "allot_share_cores_limit_pct": (_REAL, _POINTER),
    "allot_share_cores_limit_now_pct": (_REAL, _POINTER),
    "allot_share_got_1s_pct": (_REAL, _POINTER),
    "allot_share_got_60s_pct": (_REAL, _POINTER),
    "allot_share_waited_s": (_REAL, _POINTER),
    "allot_share_denied": (_WHOLE, _POINTER),
    "allot_change_new": (_POINTER,),
    "allot_change_free": (None, _POINTER),
    "allot_change_memory_bytes": (_INT, _POINTER, _INT, _WHOLE),
    "allot_change_memory_rest": (_INT, _POINTER, _INT),
    "allot_change_cores_pct": (_INT, _POINTER, _INT, _REAL),
    "allot_change_cores_limit_pct": (_INT, _POINTER, _INT, _REAL),
    "allot_change_priority": (_INT, _POINTER, _INT),
    "allot_change_elastic": (_INT, _POINTER, _INT),
}

_loaded: Optional[ctypes.CDLL] = None


def library() -> ctypes.CDLL:
    """The library, loaded when it is first asked for; ALLOT_CLIENT_LIBRARY names another file."""
    global _loaded
    if _loaded is None:
        name = os.environ.get("ALLOT_CLIENT_LIBRARY", "liballot-client.so.0")
        try:
            loaded = ctypes.CDLL(name)
        except OSError as error:
            raise ImportError(f"{error}; install liballot-client0, or allot by meson install") from error
        for function, (result, *parameters) in _FUNCTIONS.items():
            row = getattr(loaded, function)
            row.restype, row.argtypes = result, parameters
        _loaded = loaded
    return _loaded


def version() -> str:
    """The version of liballot-client."""
    return str(library().allot_client_version(), "utf-8")


def call(function: str, *arguments: object) -> None:
    """Calls what ends with a struct allot_error, and raises what that says."""
    error = ErrorStruct()
    if getattr(library(), function)(*arguments, ctypes.byref(error)) < 0:
        raise Error(error.code, error.text.decode(errors="replace"))
