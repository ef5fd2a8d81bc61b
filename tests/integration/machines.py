"""Simulated machines for tests: the programs of build/ on a simulated GPU, in the test's own run directory. ALLOT_BUILD names
another build directory. All test folders may import this module. No module may import conftest.py, because each folder
has a file of that name."""

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

# Of the environment that the tests run in, nothing that changes what allot does.
# A worker of pytest-xdist has LINES and COLUMNS, which a terminal's own size would not be looked at for.
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
    """SIGSTOP; returns when no thread of it runs any more, which the signal alone does not say."""
    os.kill(pid, signal.SIGSTOP)
    tasks = pathlib.Path(f"/proc/{pid}/task")
    wait_until(lambda: all((task / "stat").read_text().rpartition(")")[2].split()[0] == "T" for task in tasks.iterdir()),
               what=f"the stop of {pid}")


def read_of_processes(name):
    """(pid, text of /proc/PID/NAME) of each process; one that ends meanwhile is left out. Path.glob() would raise
    ProcessLookupError then: it asks for the status of each file, and forgives only some errors."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            text = pathlib.Path(f"/proc/{pid}/{name}").read_text(errors="replace")
        except OSError:
            continue
        yield int(pid), text


def processes_of(text):
    """{pid: command line} of the processes whose command line has `text`, but for zombies."""
    lines = ((pid, line.replace("\0", " ")) for pid, line in read_of_processes("cmdline"))
    return {pid: line for pid, line in lines if text in line}


@dataclass
class Share:
    """What a tenant had of a card in the time of its load: work done, over all its processes, and GPU
    time charged. Policies go by the charge, so that is what a test of shares in wall time looks at.
    The work is less where processors are short: ends of work, and grants, are then seen late, at the
    tenant's cost."""
    work_pct: float
    charged_pct: float

    def is_sound(self):
        """Something was done, and nothing that was not charged."""
        return 0 < self.work_pct < self.charged_pct + 3


def kill_servers(*pids):
    """Returns when they have ended: until then their sockets take connections, and their locks are held."""
    servers = [os.pidfd_open(pid) for pid in pids]
    for server in servers:
        signal.pidfd_send_signal(server, signal.SIGKILL)
    for server in servers:
        assert select.select([server], [], [], 20)[0], "a server did not end"
        os.close(server)


class Machine:
    """One simulated machine: `allot` with a run directory of its own."""

    def __init__(self, directory, spec):
        self.base = directory / "run"
        self.tenants_log = directory / "tenants.log"
        self.spec = spec
        self.sim = ["--sim", spec]
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(FOREIGN)}
        self.environment["ALLOT_RUN_DIR"] = str(self.base)
        self.started = []

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
        """The same in the background; a Popen, ended with the test."""
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
        """The command of a load: kernels of known cost."""
        return [str(BUILD / "allot-load"), "--json", *map(str, options)]

    def start_load(self, *terms, load=()):
        """A load in the background, in a tenant of these terms that stays for end_load()."""
        return self.start(*terms, "--", "sh", "-c", '"$@" && echo end && read -r line', "sh",
                          *self.load(*load), stdin=subprocess.PIPE,
                          environment={"ALLOT_LOG": str(self.tenants_log)})

    def was_daemon_missed(self):
        """Whether allotd had no processor for so long that tenants which log to `tenants_log` took it for dead."""
        return self.tenants_log.exists() and "no heartbeat from the daemon" in self.tenants_log.read_text()

    def end_load(self, tenant, name=None):
        """Waits for its load's end, then ends it. Returns a Share, and the load's JSON lines. Skips the
        test where allotd had no processor for so long that tenants took it for dead: nobody arbitrates
        and charges then, as is meant."""
        lines = []
        for line in iter(tenant.stdout.readline, "end\n"):
            assert line, tenant.stderr.read()
            lines.append(json.loads(line))
        devices = self.tenants()[name or f"p{tenant.pid}"]["devices"]
        tenant.stdin.close()
        tenant.wait(timeout=20)
        if self.was_daemon_missed():
            pytest.skip("this machine let allotd stand still for 250 ms")
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
        """Waits until the tenant is listed and the condition holds of it."""
        def look():
            tenant = self.tenants().get(name)
            return tenant if tenant and condition(tenant) else None

        return wait_until(look, what=f"tenant {name}")

    def servers(self):
        """{pid: command line} of the daemons and cards of this machine."""
        return {pid: line for pid, line in processes_of(str(self.base)).items()
                if re.match(r"\S*/allot(d|-sim) ", line)}

    def daemons(self):
        return {pid for pid, line in self.servers().items() if "/allotd " in line}

    def kill_daemon(self, *more):
        """Kills the daemon, and `more` pids with it; returns when the next one, which `allot run` starts, has
        its tenants back."""
        old = self.daemons()
        kill_servers(*old, *more)
        wait_until(lambda: self.daemons() - old and self.ps()["devices"], what="the next daemon")

    def wait_until_gone(self, seconds=20.0):
        """Private daemons and cards end by themselves, soon after the last tenant; a daemon that never
        had one waits longer, for whoever started it."""
        wait_until(lambda: not self.servers(), seconds, "the end of daemon and card")

    def mps_pids(self):
        """Of groups' control daemons, by the records that their daemon may be taking away just now."""
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
        # A group's MPS outlives its daemon; its command line does not tell whose it is.
        helpers += self.mps_pids()
        for pid in filter(None, [*self.servers(), *helpers]):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def make_machine(tmp_path_factory, spec):
    # Short: a socket's path has 107 bytes.
    return Machine(tmp_path_factory.mktemp("m"), spec)
