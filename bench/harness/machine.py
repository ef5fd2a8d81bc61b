"""The GPU that is measured, real or simulated. Runs commands on it in two ways: each in its own tenant through
`allot run`, or natively, without allot."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time

from . import nvml
from .build import REPOSITORY
from .job import Failed, Job


VISIBLE = "CUDA_VISIBLE_DEVICES"    # CUDA, MPS and allot run obey it
IDLE = "idle"                       # the tenant that keeps the daemon alive


def read_commit():
    """The commit that is measured: from ALLOT_COMMIT, for a copy without .git, else from git. It ends with "-dirty" if tracked
    files have changes. None: unknown."""
    if os.environ.get("ALLOT_COMMIT"):
        return os.environ["ALLOT_COMMIT"]
    try:
        out = subprocess.run(["git", "-C", REPOSITORY, "describe", "--always", "--dirty",
                              "--abbrev=12", "--exclude=*"], capture_output=True, text=True, check=True)
        return out.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


@contextlib.contextmanager
def server(command, path, environment=None):
    """Starts a server, and returns its process once this socket exists."""
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 20
        while not os.path.exists(path):
            if process.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"{command[0]} does not start")
            time.sleep(0.02)
        yield process
    finally:
        process.terminate()
        process.wait()


class Machine:
    """Use it in a `with`. An idle tenant, which has no process on the GPU, keeps one daemon alive for the whole time, so that
    no case measures a daemon's start."""

    def __init__(self, build, sim=None, gpu=None):
        """gpu: the index of the one GPU that all programs see, tenants and others; None: all GPUs."""
        self.build = build
        self.sim = sim
        self.is_simulated = bool(sim)     # also while a system daemon serves, when `sim` is None
        self.chosen = gpu
        self.gpu_index = None   # of the daemon
        self.gpu_uuid = None
        self.options = []       # options of allot run for all tenants
        self.sharing = None     # --sharing of tenants that do not set it themselves
        self.allot = build.program("allot")
        self.jobs = []
        self.idle_tenant = None
        self.accusation_count = 0
        self.run_dir = tempfile.mkdtemp(prefix="allot-gpu-", dir="/tmp")
        self.tenant_environment = dict(os.environ, ALLOT_RUN_DIR=self.run_dir,
                                       PYTHONUNBUFFERED="1")
        self.native_environment = dict(os.environ, PYTHONUNBUFFERED="1")

    def __enter__(self):
        try:
            self._open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def _open(self):
        socket = self._open_idle_tenant()
        library = "libnvidia-ml.so.1"
        if self.sim:
            library = os.path.join(self.build.sim_dir(), library)
            os.environ["ALLOT_SIM_SOCKET"] = socket     # for NVML in this process
        if self.chosen is not None:
            device = self.tenant_device(IDLE)
            self.gpu_index, self.gpu_uuid = device["index"], device["uuid"]
            self.pin()
        self.nvml = nvml.Nvml(library=library, uuid=self.gpu_uuid)
        self.gpu = self.nvml.name()
        self.driver = self.nvml.driver()

    def pin(self, is_pinned=True):
        """From now on programs see only the chosen GPU or, if not is_pinned, all GPUs that this process sees."""
        visible = self.gpu_uuid if is_pinned else os.environ.get(VISIBLE)
        for environment in (self.tenant_environment, self.native_environment):
            environment.pop(VISIBLE, None)
            if visible is not None:
                environment[VISIBLE] = visible

    def device(self):
        """The chosen GPU in `allot ps`; the first one if none was chosen."""
        return next(device for device in self.ps()["devices"] if self.gpu_uuid in (None, device["uuid"]))

    def _open_idle_tenant(self):
        # Its command reads a pipe from this process, so that it ends with this process, even if that is killed.
        chosen = ["--gpu", str(self.chosen)] if self.chosen is not None and self.gpu_uuid is None else []
        self.idle_tenant = self.tenant(
            IDLE, ["/bin/sh", "-c", 'echo "${ALLOT_SIM_SOCKET:-}"; exec cat'],
            ["--memory", "64MiB", "--sharing", "time", *chosen], stdin=True)
        socket = self.idle_tenant.wait_line(0, 60)
        if socket is None:
            self.idle_tenant.wait(10)    # its errors are all read then
            raise Failed(f"allot run does not work here{self.idle_tenant.tail()}")
        if self.sim:
            sim_dir = self.build.sim_dir()
            old = os.environ.get("LD_LIBRARY_PATH")
            self.native_environment["ALLOT_SIM_SOCKET"] = socket
            self.native_environment["LD_LIBRARY_PATH"] = sim_dir + (":" + old if old else "")
        return socket

    def restart(self, options):
        """Ends all tenants and the daemon, and starts a daemon whose tenants have these options of allot run. This is for
        options that belong to a daemon, such as its policy. If they are refused, starts a daemon without
        options and raises Failed with the reason."""
        for job in self.jobs:
            job.kill()
        self._wait_for_daemon_to_end()
        self.options = list(options)
        try:
            self._open_idle_tenant()
        except Failed:
            self.options = []
            self._open_idle_tenant()
            raise

    @contextlib.contextmanager
    def without_daemon(self):
        """Ends all tenants and the daemon, so that the caller can start another daemon: a GPU can have only one."""
        for job in self.jobs:
            job.kill()
        self._wait_for_daemon_to_end()
        try:
            yield
        finally:
            self._open_idle_tenant()

    @contextlib.contextmanager
    def system_daemon(self, settings=""):
        """Replaces the private daemon by a system daemon, which serves all users, as on a node. Yields its run directory.
        `settings`: lines of its settings file."""
        with self.without_daemon(), tempfile.TemporaryDirectory(prefix="allot-gpu-", dir="/tmp") as folder, \
                contextlib.ExitStack() as servers:
            os.chmod(folder, 0o755)
            # The paths at which allot run looks for a daemon under this ALLOT_RUN_DIR.
            run_dir, sim, config = (os.path.join(folder, name) for name in ("gpu", "sim", "settings"))
            with open(config, "w", encoding="utf-8") as file:
                file.write(settings)
            before = self.sim, self.tenant_environment
            self.tenant_environment = dict(before[1], ALLOT_RUN_DIR=folder)
            command = [self.build.program("allotd"), "--foreground", "--run-dir", run_dir, "--config", config]
            try:
                if self.sim:
                    servers.enter_context(server([self.build.program("allot-sim"), "--foreground", "--linger", "0",
                                                  "--spec", self.sim, "--socket", sim], sim))
                    self.tenant_environment.update(ALLOT_SIM_SOCKET=sim, LD_LIBRARY_PATH=self.build.sim_dir())
                    command += ["--sim-socket", sim]
                    self.sim = None
                servers.enter_context(server(command, os.path.join(run_dir, "allotd.sock"), self.tenant_environment))
                yield run_dir
            finally:
                for job in self.jobs:
                    job.kill()
                self.sim, self.tenant_environment = before

    def close(self):
        for job in self.jobs:
            job.kill()
        self._wait_for_daemon_to_end()
        shutil.rmtree(self.run_dir, ignore_errors=True)

    def _wait_for_daemon_to_end(self):
        """A private daemon ends after its last tenant."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            if not any("allotd.sock" in files for _, _, files in os.walk(self.run_dir)):
                return
            time.sleep(0.1)

    # ---- commands

    def native(self, name, command, stdin=False, environment=None):
        """`environment`: variables added to those of all native processes."""
        return self._start(name, command, {**self.native_environment, **(environment or {})}, stdin)

    def tenant(self, name, command, options=(), stdin=False):
        """`options`: options of allot run."""
        sim = ["--sim", self.sim] if self.sim else []
        sharing = ["--sharing", self.sharing] if self.sharing and "--sharing" not in options else []
        return self._start(name, [self.allot, "run", "--name", name, *sim, *self.options, *sharing,
                                  *options, "--", *command], self.tenant_environment, stdin)

    def start(self, name, command, options=None, stdin=False, environment=None):
        """Starts a tenant with these options or, if they are None, a native process with this environment."""
        if options is None:
            return self.native(name, command, stdin, environment)
        return self.tenant(name, command, options, stdin)

    def refuses(self, *options):
        """None if allot run accepts these options here, else its error text."""
        job = self.tenant("offered", ["/bin/true"], ["--memory", "64MiB", *options])
        return None if job.wait(30) == 0 else f"not offered by this build{job.tail()}"

    def stop_all(self):
        """Kills all jobs of a case, and waits until the daemon has removed their tenants."""
        for job in self.jobs:
            if job is not self.idle_tenant:
                job.kill()
        self.settle()

    def settle(self):
        """Waits until the daemon has removed the tenants of ended jobs, which frees their guaranteed memory."""
        deadline = time.monotonic() + 10
        while len(self.ps()["tenants"]) > 1 and time.monotonic() < deadline:
            time.sleep(0.1)

    def _start(self, name, command, environment, stdin):
        # `allot run` refuses to start within a tenant.
        environment = {k: v for k, v in environment.items() if k != "ALLOT_SOCKET"}
        job = Job(name, command, environment, stdin)
        self.jobs = [j for j in self.jobs if j.process.poll() is None]
        self.jobs.append(job)
        return job

    def tell(self, *words):
        """Runs `allot WORDS...` of the command line and returns what it prints."""
        sim = ["--sim", self.sim] if self.sim else []
        out = subprocess.run([self.allot, *words, *sim], env=self.tenant_environment,
                             capture_output=True, text=True, timeout=20, check=False)
        if out.returncode != 0:
            raise Failed(f"allot {words[0]}: status {out.returncode}: {out.stderr.strip()}")
        return out.stdout

    def trace(self, name, path):
        """Starts `allot trace` of a tenant; it records until it is interrupted."""
        sim = ["--sim", self.sim] if self.sim else []
        return self._start(f"trace of {name}", [self.allot, "trace", name, *sim, "--output", path],
                           self.tenant_environment, False)

    def ps(self):
        """The output of `allot ps --json`."""
        return json.loads(self.tell("ps", "--json"))

    def choose(self, count):
        """The GPUs that the daemon chooses for a tenant that asks for `count` GPUs without naming any. This asks the
        daemon by its protocol, as `allot run` always names GPUs. The tenant ends with the connection."""
        path, = (os.path.join(folder, "allotd.sock") for folder, _, files in os.walk(self.run_dir)
                 if "allotd.sock" in files)
        request = {"version": 1, "op": "create", "hold": True, "name": "chosen",
                   "devices": count * [{"memory_bytes": 64 << 20}]}
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(20)
            s.connect(path)
            s.sendall(json.dumps(request).encode() + b"\n")
            reply = json.loads(s.makefile().readline())
        if not reply["ok"]:
            raise Failed(f"{count} GPUs: {reply['error']}")
        return [device["index"] for device in reply["devices"]]

    def daemon_log(self):
        """The text of the log of this machine's allotd."""
        logs = [os.path.join(folder, "allotd.log") for folder, _, files in os.walk(self.run_dir) if "allotd.log" in files]
        text = ""
        for log in logs:
            with open(log, encoding="utf-8", errors="replace") as file:
                text += file.read()
        return text

    def accusations(self):
        """Lines that allotd logged since the last call about tenants that used GPU time without being charged for it."""
        lines = [line for line in self.daemon_log().splitlines() if "but was charged for at most" in line]
        new, self.accusation_count = lines[self.accusation_count:], len(lines)
        return new

    def daemon_pid(self):
        """The pid of this machine's allotd, found by the run directory in its command line."""
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if os.path.basename(words[0]) == b"allotd" and any(
                    word.startswith(self.run_dir.encode()) for word in words):
                return int(entry)
        raise Failed("the daemon's process was not found in /proc")

    def tenant_device(self, name):
        """The first device of a tenant in `allot ps`, or None when there is no such tenant."""
        for tenant in self.ps()["tenants"]:
            if tenant["name"] == name:
                return tenant["devices"][0]
        return None
