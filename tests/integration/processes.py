"""Ends processes that a test has started; for these tests and for those against Kubernetes."""

import subprocess


def end_process(process, seconds=20):
    """Terminates it; by force if it does not end in time."""
    process.terminate()
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
