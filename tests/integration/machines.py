"""Simulated machines for tests: the programs of build/ on a simulated GPU, in the test's own run directory. ALLOT_BUILD names
another build directory. All test folders may import this module. No module may import conftest.py, because each folder has a
file of that name."""

import json
import os
import pathlib
import re
import select
import signal
import subprocess
import time
from dataclasses import dataclass

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("ALLOT_BUILD", ROOT / "build")).resolve()
GIB = 1 << 30

# Variables of the tests' own environment that would change what allot does. A worker of pytest-xdist has LINES and COLUMNS,
# which take precedence over a terminal's size.
FOREIGN = ("ALLOT_", "CUDA_", "LD_PRELOAD", "LD_LIBRARY_PATH", "XDG_RUNTIME_DIR", "NVIDIA_", "LINES", "COLUMNS")


def wait_until(condition, seconds=60.0, what="the condition"):
    """Waits until condition() is true, and returns what it returned."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            pytest.fail(f"{what}: not within {seconds} s")
        time.sleep(0.02)


def stop_process(pid):
    """Stops a process by SIGSTOP. Returns when all its threads have stopped, which may be some time after the signal."""
    os.kill(pid, signal.SIGSTOP)
    tasks = pathlib.Path(f"/proc/{pid}/task")
    wait_until(lambda: all((task / "stat").read_text().rpartition(")")[2].split()[0] == "T" for task in tasks.iterdir()),
               what=f"the stop of {pid}")


def read_of_processes(name):
    """Yields (pid, text of /proc/PID/NAME) of each process, except of those that end meanwhile. Path.glob() would raise
    ProcessLookupError for them: it reads the status of each file, and ignores only some errors."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            text = pathlib.Path(f"/proc/{pid}/{name}").read_text(errors="replace")
        except OSError:
            continue
        yield int(pid), text


def processes_of(text):
    """Returns {pid: command line} of the processes, except zombies, whose command line contains `text`."""
    lines = ((pid, line.replace("\0", " ")) for pid, line in read_of_processes("cmdline"))
    return {pid: line for pid, line in lines if text in line}


@dataclass
class Share:
    """A tenant's share of a GPU while its load ran: the work of all its processes, and the GPU time charged. Policies use the
    charge, so tests of shares in wall time check it. Work is lower on a busy machine, where the ends of work and grants are
    noticed late."""
    work_pct: float
    charged_pct: float

    def is_sound(self):
        """Whether some work was done, and none that was not charged."""
        return 0 < self.work_pct < self.charged_pct + 3


def kill_servers(*pids):
    """Kills processes, and returns when they have ended. Until then their sockets accept connections, and their locks are
    held."""
    servers = [os.pidfd_open(pid) for pid in pids]
    for server in servers:
        signal.pidfd_send_signal(server, signal.SIGKILL)
    for server in servers:
        assert select.select([server], [], [], 20)[0], "a server did not end"
        os.close(server)


UNPAID = "but was charged for at most"  # of allotd's warning about a tenant


class Machine:
    """One simulated machine: `allot` with its own run directory."""

    def __init__(self, directory, spec):
        self.base = directory / "run"
        self.tenants_log = directory / "tenants.log"
        self.spec = spec
        self.sim = ["--sim", spec]
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(FOREIGN)}
        self.environment["ALLOT_RUN_DIR"] = str(self.base)
        self.started = []
        self.has_thief = False  # a test's tenant uses GPU time past the library

    @property
    def run_dir(self):
        return self.base / f"sim-{self.spec}"

    def allot(self, *args, timeout=60, **more):
        """Runs `allot ARGS...` to its end."""
        more.setdefault("stdin", subprocess.DEVNULL)
        environment = {**self.environment, **more.pop("environment", {})}
        return subprocess.run([BUILD / "allot", *map(str, args)], capture_output=True, text=True,
                              timeout=timeout, check=False, env=environment, **more)

    def run(self, *options_and_command, **more):
        """allot run --sim SPEC ..."""
        return self.allot("run", *self.sim, *options_and_command, **more)

    def start(self, *options_and_command, **more):
        """Starts `allot run` in the background. Returns its Popen, which clean() terminates."""
        more.setdefault("stdin", subprocess.DEVNULL)
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("stderr", subprocess.PIPE)
        environment = {**self.environment, **more.pop("environment", {})}
        process = subprocess.Popen(
            [BUILD / "allot", "run", *self.sim, *map(str, options_and_command)], text=True,
            env=environment, **more)
        self.started.append(process)
        return process

    def load(self, *options):
        """Returns the command of allot-load, which launches kernels of known cost."""
        return [str(BUILD / "allot-load"), "--json", *map(str, options)]

    def start_load(self, *terms, load=()):
        """Starts a load in the background, in a tenant with the options `terms`. The tenant stays until end_load()."""
        return self.start(*terms, "--", "sh", "-c", '"$@" && echo end && read -r line', "sh",
                          *self.load(*load), stdin=subprocess.PIPE,
                          environment={"ALLOT_LOG": str(self.tenants_log)})

    def was_daemon_missed(self):
        """Whether allotd got no CPU time for so long that a tenant of start_load() took it for dead."""
        return self.tenants_log.exists() and "no heartbeat from the daemon" in self.tenants_log.read_text()

    def end_load(self, tenant, name=None):
        """Waits for the end of a load of start_load(), then ends its tenant. Returns a Share, and the load's JSON lines.
        Skips the test if allotd got no CPU time for so long that tenants took it for dead: by design, nothing is arbitrated or
        charged then."""
        lines = []
        for line in iter(tenant.stdout.readline, "end\n"):
            assert line, tenant.stderr.read()
            lines.append(json.loads(line))
        devices = self.tenants()[name or f"p{tenant.pid}"]["devices"]
        tenant.stdin.close()
        tenant.wait(timeout=20)
        if self.was_daemon_missed():
            pytest.skip("allotd got no CPU time for 250 ms on this machine")
        last = [line for line in lines if "share_pct" in line]
        return Share(work_pct=sum(line["share_pct"] for line in last),
                     charged_pct=100 * sum(device["used_s"] for device in devices) /
                     max(line["elapsed_s"] for line in last)), lines

    def ps(self):
        result = self.allot("ps", "--json", *self.sim)
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    def tenants(self):
        return {tenant["name"]: tenant for tenant in self.ps()["tenants"]}

    def wait_for_tenant(self, name, condition=lambda tenant: True):
        """Waits until the tenant is listed and condition(tenant) is true. Returns the tenant."""
        def find_tenant():
            tenant = self.tenants().get(name)
            return tenant if tenant and condition(tenant) else None

        return wait_until(find_tenant, what=f"tenant {name}")

    def servers(self):
        """Returns {pid: command line} of this machine's daemons and servers of simulated GPUs."""
        return {pid: line for pid, line in processes_of(str(self.base)).items()
                if re.match(r"\S*/allot(d|-sim) ", line)}

    def daemons(self):
        return {pid for pid, line in self.servers().items() if "/allotd " in line}

    def kill_daemon(self, *more):
        """Kills the daemon, and the pids `more` with it. Returns when the next daemon, which `allot run` starts, lists its
        GPUs."""
        old = self.daemons()
        kill_servers(*old, *more)
        wait_until(lambda: self.daemons() - old and self.ps()["devices"], what="the next daemon")

    def wait_until_gone(self, seconds=20.0):
        """Waits until the private daemon and the simulated GPU have ended, as they do soon after the last tenant. A daemon that
        never had a tenant waits longer, for the command that started it."""
        wait_until(lambda: not self.servers(), seconds, "the end of the daemon and the simulated GPU")

    def mps_pids(self):
        """Returns the pids of groups' MPS control daemons, from allotd's records, which allotd may be deleting meanwhile."""
        found = []
        for record in self.base.glob("*/mps/*.json"):
            try:
                found.append(json.loads(record.read_text())["pid"])
            except FileNotFoundError:
                pass
        return found

    def clean(self):
        for process in self.started:
            process.terminate()
        for process in self.started:
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe:
                    pipe.close()
        helpers = [pid for pid, line in processes_of(str(self.base)).items()
                   if line.startswith("allot-checkpoint ")]
        # A group's MPS control daemon outlives allotd, and its command line does not show which allotd started it.
        helpers += self.mps_pids()
        for pid in filter(None, [*self.servers(), *helpers]):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        # No test's tenant may be accused by mistake of using GPU time without being charged (over_time).
        accusations = [line for log in self.base.rglob("allotd.log")
                       for line in log.read_text(errors="replace").splitlines() if UNPAID in line]
        assert self.has_thief or not accusations, accusations


def make_machine(tmp_path_factory, spec):
    # A short name, because a socket's path has at most 107 bytes.
    return Machine(tmp_path_factory.mktemp("m"), spec)
