"""Whether calls of this process pass liballot.so by: src/library/bypass.h, and harness/bypass.py."""

import ctypes


def of_this_process():
    """A function that takes whether they do so, or None where the library can't stand aside."""
    try:
        function = ctypes.CDLL(None).allot_bypass
    except AttributeError:
        return None
    function.argtypes, function.restype = [ctypes.c_bool], None
    return function
