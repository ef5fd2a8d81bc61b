"""The daemon as a service: its notifications to the service manager, and its unit file, checked by systemd's own tool."""

import os
import shutil
import signal
import socket
import subprocess

import pytest

from held import can_mount
from machines import BUILD
from servers import start


def test_the_service_manager_is_notified(machine, tmp_path):
    """The daemon notifies its start, its watchdog and its end. Tenants' programs do not inherit the variables for that."""
    machine.run_dir.mkdir(parents=True, mode=0o700)
    sim = machine.run_dir / "sim.sock"
    start("allot-sim", "--socket", sim, "--spec", "h200")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        name = str(tmp_path / "notify")
        manager.bind(name)
        manager.settimeout(30)

        def receive():
            return manager.recv(4096).decode().splitlines()

        daemon = subprocess.Popen(
            [BUILD / "allotd", "--foreground", "--private", "--run-dir", machine.run_dir, "--sim-socket", sim,
             "--nvml", BUILD / "sim" / "libnvidia-ml.so.1"], stderr=subprocess.DEVNULL,
            env={**machine.environment, "NOTIFY_SOCKET": name, "WATCHDOG_USEC": "200000"})
        machine.started.append(daemon)
        assert receive() == ["READY=1", f"MAINPID={daemon.pid}", f"STATUS=1 GPU, {machine.run_dir}"]
        done = machine.run("--", "sh", "-c", "env")
        assert done.returncode == 0 and "NOTIFY" not in done.stdout and "WATCHDOG" not in done.stdout
        for _ in range(3):
            assert receive() == ["WATCHDOG=1"]
        daemon.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, daemon.pid, os.WSTOPPED)
        manager.settimeout(0)
        with pytest.raises(BlockingIOError):
            while receive() == ["WATCHDOG=1"]:
                pass
        manager.settimeout(0.5)
        with pytest.raises(TimeoutError):
            receive()
        manager.settimeout(30)
        daemon.send_signal(signal.SIGCONT)
        assert receive() == ["WATCHDOG=1"]
        daemon.terminate()
        while (line := receive()) == ["WATCHDOG=1"]:
            pass
        assert line == ["STOPPING=1"]
        assert daemon.wait(timeout=30) == 0


def test_the_system_settings_file_is_reported(machine, tmp_path):
    """A daemon that reads /etc/allot/allotd.conf, because no other file was given, reports that."""
    if not can_mount():
        pytest.skip("no mount namespaces")
    machine.run_dir.mkdir(parents=True, mode=0o700)
    sim = machine.run_dir / "sim.sock"
    start("allot-sim", "--socket", sim, "--spec", "h200")
    etc = tmp_path / "etc"
    subprocess.run(["cp", "-a", "/etc", etc], check=True)
    (etc / "allot").mkdir(exist_ok=True)
    (etc / "allot" / "allotd.conf").write_text("policy = token\n")
    daemon = subprocess.Popen(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount --bind "$0" /etc && exec "$@"', etc,
         BUILD / "allotd", "--foreground", "--run-dir", machine.run_dir, "--sim-socket", sim,
         "--nvml", BUILD / "sim" / "libnvidia-ml.so.1", "--ready-fd", "1"],
        stdout=subprocess.PIPE, text=True, env=machine.environment)
    machine.started.append(daemon)
    assert daemon.stdout.readline().startswith("ready")
    done = machine.run("--", "true", environment={"ALLOT_CONFIG": os.devnull})
    assert done.returncode == 0 and "with the settings of /etc/allot/allotd.conf;" in done.stderr, done.stderr


@pytest.mark.parametrize("program, options", (("allotd", " --foreground"), ("allot-scheduler", "")))
def test_the_unit_file_is_valid(tmp_path, program, options):
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze here")
    text = (BUILD / f"{program}.service").read_text()
    assert "@bindir@" not in text
    unit = tmp_path / f"{program}.service"
    (command,) = [line for line in text.splitlines() if line.startswith("ExecStart=")]
    assert command.endswith(f"/bin/{program}{options}")
    unit.write_text(text.replace(command, f"ExecStart={BUILD}/{program}{options}"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True,
                          check=False, timeout=60)
    assert done.returncode == 0 and program not in done.stderr, done.stderr
