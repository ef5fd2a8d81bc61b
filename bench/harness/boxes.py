"""Test containers for the freezer, and a system daemon that watches them. Each is only a cgroup with an engine's kind of
name, below a cgroup made for this run; nothing else on the machine is touched. The bench and tests/integration use this."""

import itertools
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

NUMBERS = itertools.count(1)


def wait_until(condition, seconds=10.0, what="the condition"):
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.005)


def hierarchies():
    """{"v2": mount point, "v1": mount point of the freezer}, with only the cgroup versions that this machine has."""
    found = {}
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, rest = line.partition(" - ")
        kind, _, options = rest.split(" ", 2)
        mount = fields.split()[4]
        if kind == "cgroup2":
            found.setdefault("v2", pathlib.Path(mount))
        elif kind == "cgroup" and "freezer" in options.split(","):
            found.setdefault("v1", pathlib.Path(mount))
        elif kind == "cgroup" and "pids" in options.split(","):
            found.setdefault("no freezer", pathlib.Path(mount))
    return found


def why_not(version):
    """Why test cgroups of this version can't be made; None if they can."""
    mount = hierarchies().get(version)
    if os.geteuid() != 0:
        return "needs root"
    if not mount:
        return f"no cgroups of {version} are mounted"
    probe = mount / f"allot-probe-{os.getpid()}"
    try:
        probe.mkdir()
        files = {path.name for path in probe.iterdir()}
        probe.rmdir()
    except OSError as error:
        return str(error)
    if version == "v2" and "cgroup.freeze" not in files:
        return "this kernel's version 2 has no freezer"
    return None


class Box:
    """One container: its cgroup and its processes."""

    def __init__(self, boxes, number, environment):
        self.id = f"{number:x}".ljust(64, "0")
        self.directory = boxes.top / "docker" / self.id
        self.directory.mkdir()
        self.environment = environment
        self.processes = []

    def start(self, *command, **more):
        procs = str(self.directory / "cgroup.procs")

        def move_in():
            with open(procs, "w") as file:
                file.write(str(os.getpid()))

        process = subprocess.Popen(list(map(str, command)), preexec_fn=move_in, text=True,
                                   stdout=subprocess.PIPE, env=self.environment, **more)
        self.processes.append(process)
        return process

    def is_frozen(self):
        try:
            events = self.directory / "cgroup.events"
            if events.exists():
                return "frozen 1" in events.read_text()
            return (self.directory / "freezer.state").read_text().strip() == "FROZEN"
        except OSError:
            return False

    def thaw(self):
        for name, text in (("cgroup.freeze", "0"), ("freezer.state", "THAWED")):
            try:
                if (self.directory / name).exists():
                    (self.directory / name).write_text(text)
            except OSError:
                pass

    def kill(self):
        self.thaw()
        for process in self.processes:
            process.kill()
            process.wait()
            process.stdout.close()
        self.processes = []

    def remove(self):
        self.kill()

        def gone():
            try:
                self.directory.rmdir()
            except FileNotFoundError:
                return True
            except OSError:
                return False
            return True

        wait_until(gone, what="the end of a test's cgroup")


class Boxes:
    """The containers of one machine, and their daemon. `sim_socket` is that of a simulated GPU, or None for a real one."""

    def __init__(self, version, sim_socket, directory, allotd, sim_dir=None, **settings):
        self.sim_socket = sim_socket
        self.allotd = allotd
        self.wrapper = []       # command words in front of the daemon's
        directory = pathlib.Path(directory)
        # The name is unique, even if the cgroup of an earlier run could not be removed.
        self.top = hierarchies()[version] / f"allot-test-{os.getpid()}-{next(NUMBERS)}"
        self.top.mkdir()
        (self.top / "docker").mkdir()
        self.directory = directory
        self.run_dir = directory / "run"
        self.boxes = []
        self.made = 0
        self.daemon = None
        self.environment = dict(os.environ)
        if sim_socket:
            self.environment.update(LD_LIBRARY_PATH=str(sim_dir), ALLOT_SIM_SOCKET=sim_socket)
        self.config = directory / "allotd.conf"
        settings = {"freezer": "on", "census_interval": "100ms",
                    "log_level": "debug", **settings}
        self.config.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
        self.tuning = directory / "tuning"
        self.tuning.write_text("thaw_settle = 300ms\n")
        self.log = directory / "log"
        self.start_daemon()

    def start_daemon(self):
        with open(self.log, "a") as log:
            self.daemon = subprocess.Popen(
                [*self.wrapper, self.allotd, "--foreground", "--run-dir", self.run_dir, "--config", self.config,
                 "--tuning", self.tuning,
                 *(["--sim-socket", self.sim_socket] if self.sim_socket else [])],
                env=self.environment, stderr=log)
        wait_until(self.answers, what="the daemon")

    def answers(self):
        assert self.daemon.poll() is None, self.log.read_text()
        try:
            self.request("hello")
        except OSError:
            return False
        return True

    def request(self, op, **more):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(self.run_dir / "allotd.sock"))
            s.sendall(json.dumps({"version": 1, "op": op, **more}).encode() + b"\n")
            return json.loads(s.makefile().readline())

    def tasks(self):
        return self.request("tasks")

    def container(self, box):
        """The daemon's record of this container, or None."""
        for container in self.tasks()["containers"]:
            if container["id"] == box.id:
                return container
        return None

    def state(self, box):
        container = self.container(box)
        return container["state"] if container else None

    def make(self):
        self.made += 1
        self.boxes.append(Box(self, 0xA1100000 + self.made - 1, self.environment))
        return self.boxes[-1]

    def end_daemon(self, how=signal.SIGTERM):
        if self.daemon:
            self.daemon.send_signal(how)
            self.daemon.wait(timeout=10)
            self.daemon = None

    def close(self):
        self.end_daemon(signal.SIGKILL)
        # The daemon's watchdog process may still be thawing containers.
        time.sleep(0.05)
        for box in self.boxes:
            box.remove()
        (self.top / "docker").rmdir()
        self.top.rmdir()
