"""A daemon that is killed at the same time as a tenant's command."""

import os
import select
import signal
from pathlib import Path

from machines import wait_until
from servers import start_daemon, start_servers


def kill_all(pids):
    """Returns when all have ended."""
    ends = [os.pidfd_open(pid) for pid in pids]
    for end in ends:
        signal.pidfd_send_signal(end, signal.SIGKILL)
    for end in ends:
        assert select.select([end], [], [], 20)[0]
        os.close(end)


def test_name_is_free_at_once(machine, tmp_path):
    """The next daemon sees that nobody can come back, and keeps no name for an hour."""
    start_servers(machine, tmp_path, "", tuning="adopt_grace = 1h\n")
    run = machine.start("--name", "a", "--", "sleep", "1000")
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children")
    wait_until(lambda: "a" in machine.tenants() and children.read_text(), what="the command")
    os.kill(run.pid, signal.SIGSTOP)  # it would start the next daemon itself
    kill_all([*machine.daemons(), run.pid, int(children.read_text())])
    start_daemon(machine, tmp_path)
    assert machine.run("--name", "a", "--", "true").returncode == 0


def test_command_that_ends_meanwhile(machine, tmp_path):
    """It lived when the next daemon began, and ends without having come back."""
    start_servers(machine, tmp_path, "", tuning="adopt_grace = 1h\n")
    run = machine.start("--name", "a", "--", "sleep", "1000")
    wait_until(lambda: "a" in machine.tenants(), what="the tenant")
    os.kill(run.pid, signal.SIGSTOP)
    kill_all(machine.daemons())
    start_daemon(machine, tmp_path)
    assert "is in use" in machine.run("--name", "a", "--", "true").stderr
    kill_all([run.pid])
    wait_until(lambda: "a" not in machine.tenants(), what="the tenant's end")
    assert machine.run("--name", "a", "--", "true").returncode == 0
