"""Peers that take what others need: connections, answers."""

import os
import socket
import subprocess
import threading

from machines import BUILD


def test_ps_tells_that_the_daemon_does_not_answer(tmp_path):
    """A daemon that has no place for a connection is no machine without tenants."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.path.join(tmp_path, "allotd.sock"))
    listener.listen(8)

    def turn_away():
        while True:
            try:
                listener.accept()[0].close()
            except OSError:
                return

    thread = threading.Thread(target=turn_away, daemon=True)
    thread.start()
    try:
        done = subprocess.run([BUILD / "allot", "ps", "--run-dir", tmp_path], capture_output=True, text=True, timeout=60)
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
    assert done.returncode != 0
    assert "no tenants" not in done.stdout
    assert "closed the connection" in done.stderr
