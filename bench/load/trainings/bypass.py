"""Lets a process bypass liballot.so for a while (src/library/bypass.h, harness/bypass.py)."""

import ctypes


def of_this_process():
    """A function that takes whether calls bypass the library; None if the loaded library has no bypass."""
    try:
        function = ctypes.CDLL(None).allot_bypass
    except AttributeError:
        return None
    function.argtypes, function.restype = [ctypes.c_bool], None
    return function
