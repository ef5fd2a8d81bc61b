"""Reads a value again and again while something else runs."""

import contextlib
import threading


@contextlib.contextmanager
def sampled(read, every_s, after_s=0.0):
    """Yields a list, to which read() adds a value each every_s seconds, from after_s on. A thread of its own reads."""
    values, stop = [], threading.Event()

    def work():
        if not stop.wait(after_s):
            while not stop.wait(every_s):
                values.append(read())
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield values
    finally:
        stop.set()
        thread.join()
