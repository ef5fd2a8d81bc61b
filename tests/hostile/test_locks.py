"""A user without a daemon holds the locks of GPUs: root's daemon starts all the same."""

import os
import pathlib
import pwd
import subprocess

import pytest

from machines import BUILD, wait_until
from servers import start_daemon, start_servers
from test_violations import SETTINGS

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the attacker is another user than root")


def lock_files(pid):
    """The lock files of GPUs that the daemon has open."""
    links = (os.readlink(link) for link in pathlib.Path(f"/proc/{pid}/fd").iterdir())
    return [path for path in links if path.endswith(".lock") and not path.endswith("/allotd.lock")]


def hold(path):
    """Starts a process of `nobody` that takes the lock as soon as it is free, and prints "held"."""
    nobody = pwd.getpwnam("nobody")
    return subprocess.Popen(["flock", path, "sh", "-c", "echo held; read -r line"], text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[])


def test_roots_daemon_starts_while_a_user_holds_the_locks(machine, tmp_path):
    start_servers(machine, tmp_path, SETTINGS)
    [daemon] = machine.daemons()
    files = lock_files(daemon)
    assert len(files) == 3
    attackers = {path: hold(path) for path in files}
    try:
        [root_file] = [path for path in files if path.startswith("/run/allot/cards/")]
        assert attackers[root_file].wait(timeout=20) != 0, "root's lock file can be opened by others"
        os.kill(daemon, 9)
        for path in set(files) - {root_file}:
            assert attackers[path].stdout.readline() == "held\n"
        wait_until(lambda: not machine.daemons(), what="the end of the daemon")
        assert "another process holds" in start_daemon(machine, tmp_path)
        assert machine.run("--", "true").returncode == 0
    finally:
        for attacker in attackers.values():
            attacker.communicate()


def test_a_second_daemon_of_root_reports_the_first(machine, tmp_path):
    start_servers(machine, tmp_path, SETTINGS)
    [daemon] = machine.daemons()
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    done = subprocess.run(
        [BUILD / "allotd", "--private", "--run-dir", other, "--sim-socket",
         machine.run_dir / "sim.sock", "--nvml", BUILD / "sim" / "libnvidia-ml.so.1"],
        capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode != 0
    assert f"another allotd shares this GPU already, pid {daemon} ({machine.run_dir})" in done.stderr
