"""The audit log of a running daemon: it records who did what, also after a rotation, a full disk or the daemon's death."""

import json
import os
import signal
import subprocess

import pytest

from machines import BUILD, wait_until
from scrape import address_in, wait_for_page
from servers import start, start_servers
from test_cdi import Devices


def start_audited_daemon(machine, tmp_path, log, more=""):
    return start_servers(machine, tmp_path,
                         f"metrics_listen = 127.0.0.1:0\naudit_log = {log}\ncensus_interval = 50ms\n{more}")


def events(log, event=None):
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert all(line["version"] == 1 and line["time"].endswith("Z") and line["by"]["kind"] for line in lines)
    return [line for line in lines if event in (None, line["event"])]


def wait_for_lost(address, count):
    wait_for_page(address, lambda page: page.value("allot_audit_lines_lost_total") == count, f"{count} lost lines")


def test_events_name_their_author_and_the_change(machine, tmp_path):
    log = tmp_path / "audit.log"
    start_audited_daemon(machine, tmp_path, log)
    tenant = machine.start("--name", "a", "--memory", "1GiB", "--cores", "20", "--", "sleep", "60")
    machine.wait_for_tenant("a")
    assert machine.allot("set", "a", "--cores", "40", *machine.sim).returncode == 0
    assert machine.allot("pause", "a", *machine.sim).returncode == 0
    assert machine.allot("resume", "a", *machine.sim).returncode == 0
    changed, = events(log, "set")
    assert changed["tenant"] == "a" and changed["uid"] == os.getuid()
    assert (changed["by"]["kind"], changed["by"]["uid"], changed["by"]["command"]) == ("socket", os.getuid(), "allot")
    assert changed["old"]["devices"][0]["cores_pct"] == 20 and changed["new"]["devices"][0]["cores_pct"] == 40
    assert events(log, "pause")[0]["new"] == {"paused": True}
    assert events(log, "resume")[0]["new"] == {"paused": False}
    assert [line["event"] for line in events(log)][:2] == ["start", "create"]
    tenant.terminate()
    wait_until(lambda: events(log, "end"), what="the tenant's end")
    ended, = events(log, "end")
    assert ended["reason"] == "its holder and processes are gone" and ended["by"] == {"kind": "daemon"}
    assert os.stat(log).st_mode & 0o777 == 0o600


def test_rotation(machine, tmp_path):
    """The log is renamed and the daemon gets SIGHUP, as by logrotate."""
    log, old = tmp_path / "audit.log", tmp_path / "audit.log.1"
    start_audited_daemon(machine, tmp_path, log)
    log.rename(old)
    (pid,) = machine.daemons()
    os.kill(pid, signal.SIGHUP)
    wait_until(log.exists, what="a new file")
    devices = Devices(machine, tmp_path)
    devices.create("a")
    assert [line["event"] for line in events(old)] == ["start"]
    assert [(line["event"], line["tenant"]) for line in events(log)] == [("claim", "a")]
    devices.remove_all()
    assert events(log, "release")[0]["tenant"] == "a" and events(log, "end")[0]["reason"] == "released by request"
    # The daemon ends, and the next one appends to the same log.
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: events(log, "stop"), what="the daemon's end")
    wait_until(lambda: not machine.daemons(), what="the daemon's end")
    start("allotd", "--private", "--run-dir", machine.run_dir, "--sim-socket", machine.run_dir / "sim.sock", "--nvml",
          BUILD / "sim" / "libnvidia-ml.so.1", "--config", tmp_path / "settings")
    assert [line["event"] for line in events(log)[-2:]] == ["stop", "start"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a file system needs root")
def test_full_disk(machine, tmp_path):
    """No request waits or fails. Lost lines are counted in a metric and reported, also in the log once there is room."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k,nr_inodes=8", "none", disk], check=True)
    try:
        log, ballast = disk / "audit.log", disk / "ballast"
        address = address_in(start_audited_daemon(machine, tmp_path, log))
        devices = Devices(machine, tmp_path)
        with open(ballast, "wb", buffering=0) as file:
            file.write(bytes(4096))
        count = 0
        while "No space left" not in (machine.run_dir / "allotd.log").read_text():
            count += 1
            assert count < 100
            devices.create(f"a{count}")
        assert f"audit_log: {log}: No space left" in (machine.run_dir / "allotd.log").read_text()
        wait_for_lost(address, 1)
        devices.create("while")
        assert len(devices.list()) == count + 1
        ballast.unlink()
        devices.create("after")
        lost, = [json.loads(line) for line in log.read_text().splitlines() if '"lost"' in line]
        assert lost["lines"] == 2
        wait_for_lost(address, 2)
        # One line may be truncated; the others are complete.
        whole = [line for line in log.read_text().splitlines() if line.endswith("}")]
        assert json.loads(whole[-1])["tenant"] == "after" and len(log.read_text().splitlines()) - len(whole) <= 1
        devices.remove_all()
    finally:
        # Lazily: the daemon has the log open until the test's end.
        subprocess.run(["umount", "--lazy", disk], check=True)


def test_violations_are_recorded(machine, tmp_path):
    """A process that bypasses the library is recorded, and the action against it."""
    log = tmp_path / "audit.log"
    start_audited_daemon(machine, tmp_path, log, "on_violation = end\n")
    # A child without the library: the memory that it holds is in no ledger.
    tenant = machine.start("--name", "bypass", "--memory", "1GiB", "--", "sh", "-c",
                           f"env -u LD_PRELOAD {BUILD / 'allot-load'} --seconds 60")
    wait_until(lambda: events(log, "violation_action"), what="the action")
    found, = events(log, "violation")
    assert found["tenant"] == "bypass" and found["reason"] == "unregistered" and found["process"] == "allot-load"
    assert events(log, "violation_action")[0]["action"] == "told_to_end"
    tenant.wait(timeout=20)


def test_the_daemon_starts_without_a_writable_log(machine, tmp_path):
    """The daemon starts all the same, and reports that events are lost."""
    messages = start_audited_daemon(machine, tmp_path, tmp_path / "none" / "audit.log")
    assert f"audit_log: {tmp_path}/none/audit.log: No such file or directory: events are lost until the file can be " \
        "written" in messages
    wait_for_lost(address_in(messages), 1)
