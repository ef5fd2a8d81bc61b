"""Ends processes that a test has started. tests/k8s uses it, too."""

import subprocess


def end_process(process, seconds=20):
    """Terminates a process, and kills it if it does not end in time."""
    process.terminate()
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
