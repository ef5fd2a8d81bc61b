"""A daemon without free connections: clients must report that."""

import os
import socket
import subprocess
import threading

from machines import BUILD


def test_ps_reports_that_the_daemon_closed_the_connection(tmp_path):
    """`allot ps` must not print an empty list when the daemon has no free connection."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.path.join(tmp_path, "allotd.sock"))
    listener.listen(8)

    def close_each_connection():
        while True:
            try:
                listener.accept()[0].close()
            except OSError:
                return

    thread = threading.Thread(target=close_each_connection, daemon=True)
    thread.start()
    try:
        done = subprocess.run([BUILD / "allot", "ps", "--run-dir", tmp_path], capture_output=True, text=True, timeout=60)
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
    assert done.returncode != 0
    assert "no tenants" not in done.stdout
    assert "closed the connection" in done.stderr
