"""Waiting for what is seen a little later than it happens."""

import time


def settled(condition, seconds=60.0):
    """Whether condition() was true within so long."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
