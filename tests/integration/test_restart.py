"""A daemon that is killed together with a tenant's command: the next daemon releases the tenant's name."""

import os
import select
import signal
from pathlib import Path

from machines import wait_until
from servers import start_daemon, start_servers


def kill_all(pids):
    """Kills these processes; returns when all have ended."""
    pidfds = [os.pidfd_open(pid) for pid in pids]
    for pidfd in pidfds:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    for pidfd in pidfds:
        assert select.select([pidfd], [], [], 20)[0]
        os.close(pidfd)


def test_the_name_of_a_dead_command_is_free_at_once(machine, tmp_path):
    """The next daemon sees that the dead command can't reconnect, and does not reserve its name for adopt_grace."""
    start_servers(machine, tmp_path, "", tuning="adopt_grace = 1h\n")
    run = machine.start("--name", "a", "--", "sleep", "1000")
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children")
    wait_until(lambda: "a" in machine.tenants() and children.read_text(), what="the command")
    os.kill(run.pid, signal.SIGSTOP)  # it would start the next daemon itself
    kill_all([*machine.daemons(), run.pid, int(children.read_text())])
    start_daemon(machine, tmp_path)
    assert machine.run("--name", "a", "--", "true").returncode == 0


def test_the_name_is_free_when_an_unadopted_command_ends(machine, tmp_path):
    """The command is alive when the next daemon starts, and ends without having reconnected."""
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
