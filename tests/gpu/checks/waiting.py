"""Waits for conditions that become visible a little after their cause."""

import time


def settled(condition, seconds=60.0):
    """Whether condition() became true within this time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
