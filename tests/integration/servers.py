"""Starts a simulated GPU and a daemon for one test, with settings for which `allot run` has no option."""

import subprocess

from machines import BUILD, kill_servers


def start(program, *arguments):
    """Starts a server, which goes to the background when it is ready. Returns the messages that it printed until then."""
    done = subprocess.run([BUILD / program, *arguments], stdin=subprocess.DEVNULL, check=False,
                          capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
    return done.stderr


def start_servers(machine, directory, settings, card="", tuning=""):
    """Starts a machine's simulated GPU and daemon; Machine.clean() ends both. `settings`, `tuning`: lines for allotd. `card`:
    lines of the GPU's description. Returns the messages of the daemon's start."""
    machine.run_dir.mkdir(parents=True, mode=0o700)
    socket = machine.run_dir / "sim.sock"
    (directory / "cards").write_text(f"[gpu]\n{card}")
    (directory / "settings").write_text(f"{settings}linger = 30s\n")
    (directory / "tuning").write_text(tuning)
    start("allot-sim", "--socket", socket, "--spec", directory / "cards")
    return start_daemon(machine, directory)


def start_daemon(machine, directory):
    """Starts a daemon with the settings that start_servers() wrote. Returns the messages of its start."""
    socket = machine.run_dir / "sim.sock"
    return start("allotd", "--private", "--run-dir", machine.run_dir, "--sim-socket", socket,
                 "--nvml", BUILD / "sim" / "libnvidia-ml.so.1", "--config", directory / "settings",
                 "--tuning", directory / "tuning")


def restart_daemon(machine, directory):
    """Kills the daemon, and returns when the next one serves."""
    kill_servers(*machine.daemons())
    start_daemon(machine, directory)
