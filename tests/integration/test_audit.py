"""The audit log of a running daemon: it says who did what, also after a rotation, a full disk or the daemon's death."""

import json
import os
import signal
import subprocess

import pytest

from machines import BUILD, wait_until
from scrape import address_in, wait_for_page
from servers import start, start_servers
from test_cdi import Devices


def settle(machine, tmp_path, log, more=""):
    return start_servers(machine, tmp_path,
                         f"metrics_listen = 127.0.0.1:0\naudit_log = {log}\ncensus_interval = 50ms\n{more}")


def events(log, event=None):
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert all(line["version"] == 1 and line["time"].endswith("Z") and line["by"]["kind"] for line in lines)
    return [line for line in lines if event in (None, line["event"])]


def wait_for_lost(address, count):
    wait_for_page(address, lambda page: page.value("allot_audit_lines_lost_total") == count, f"{count} lost lines")


def test_who_and_what(machine, tmp_path):
    log = tmp_path / "audit.log"
    settle(machine, tmp_path, log)
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
    """As logrotate does: moved away, and the daemon told."""
    log, old = tmp_path / "audit.log", tmp_path / "audit.log.1"
    settle(machine, tmp_path, log)
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
    # It ends, and another goes on behind it.
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: events(log, "stop"), what="the daemon's end")
    wait_until(lambda: not machine.daemons(), what="the daemon's end")
    start("allotd", "--private", "--run-dir", machine.run_dir, "--sim-socket", machine.run_dir / "sim.sock", "--nvml",
          BUILD / "sim" / "libnvidia-ml.so.1", "--config", tmp_path / "settings")
    assert [line["event"] for line in events(log)[-2:]] == ["stop", "start"]


@pytest.mark.skipif(os.geteuid() != 0, reason="a file system of its own needs root")
def test_full_disk(machine, tmp_path):
    """Nothing waits and nothing fails; what is missing is counted, said, and told of when there is room."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k,nr_inodes=8", "none", disk], check=True)
    try:
        log, ballast = disk / "audit.log", disk / "ballast"
        address = address_in(settle(machine, tmp_path, log))
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
        told, = [json.loads(line) for line in log.read_text().splitlines() if '"lost"' in line]
        assert told["lines"] == 2
        wait_for_lost(address, 2)
        # One line may have been cut; the others are whole.
        whole = [line for line in log.read_text().splitlines() if line.endswith("}")]
        assert json.loads(whole[-1])["tenant"] == "after" and len(log.read_text().splitlines()) - len(whole) <= 1
        devices.remove_all()
    finally:
        # The daemon has it open until the machine's end.
        subprocess.run(["umount", "--lazy", disk], check=True)


def test_violations(machine, tmp_path):
    """Who gets round the library, and what was done."""
    log = tmp_path / "audit.log"
    settle(machine, tmp_path, log, "on_violation = end\n")
    # Without the library, below the tenant's command: it holds memory that no ledger has.
    tenant = machine.start("--name", "round", "--memory", "1GiB", "--", "sh", "-c",
                           f"env -u LD_PRELOAD {BUILD / 'allot-load'} --seconds 60")
    wait_until(lambda: events(log, "violation_action"), what="what is done about it")
    found, = events(log, "violation")
    assert found["tenant"] == "round" and found["reason"] == "unregistered" and found["process"] == "allot-load"
    assert events(log, "violation_action")[0]["action"] == "told_to_end"
    tenant.wait(timeout=20)


def test_a_file_that_can_not_be(machine, tmp_path):
    """The daemon starts all the same, and says it."""
    said = settle(machine, tmp_path, tmp_path / "none" / "audit.log")
    assert f"audit_log: {tmp_path}/none/audit.log: No such file or directory: events are lost until the file can be written" in said
    wait_for_lost(address_in(said), 1)
