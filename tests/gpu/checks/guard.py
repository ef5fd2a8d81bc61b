"""With guard_devices = on, only tenants and root open GPUs in sessions of users, and cuInit is not slower.

The daemon runs in a cgroup namespace of its own, so that it guards a user.slice of this check and not the machine's."""

import contextlib
import os
import pwd
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from harness.job import Failed

CGROUPS = "/sys/fs/cgroup"
SESSION = "user.slice/session"
SETTINGS = "guard_devices = on\nlinger = 60s\n"
NO_DEVICE = 100         # CUDA_ERROR_NO_DEVICE
PAIRS = 10
ADDED_MOST_MS = 0.3
OPENS_PER_DESCRIPTOR = 4  # some nodes are closed again before cuInit returns: at most so many opens for each that stays
WAIT_S = 60
# Prints cuInit's result, and how long it took in ms.
CUINIT = """import ctypes, time
cuda = ctypes.CDLL("libcuda.so.1")
begin = time.monotonic_ns()
print(cuda.cuInit(0), (time.monotonic_ns() - begin) / 1e6)"""
# Prints how many descriptors of NVIDIA's device nodes cuInit leaves open, and how long it takes to open and close one, in us.
OPEN = """import ctypes, os, time
assert ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
links = []
for fd in os.listdir("/proc/self/fd"):
    try:
        links.append(os.readlink("/proc/self/fd/" + fd))
    except FileNotFoundError:
        pass
least = 1e9
for _ in range(50):
    begin = time.monotonic_ns()
    for _ in range(100):
        os.close(os.open("/dev/nvidiactl", os.O_RDWR))
    least = min(least, (time.monotonic_ns() - begin) / 1e5)
print(sum(link.startswith("/dev/nvidia") for link in links), least)"""


class Guarded:
    def __init__(self, machine):
        self.machine = machine
        self.folder = tempfile.mkdtemp(prefix="allot-guard-", dir="/tmp")
        os.chmod(self.folder, 0o755)
        self.run_dir = os.path.join(self.folder, "gpu")  # where allot run looks below ALLOT_RUN_DIR
        self.top = os.path.join(CGROUPS, os.path.basename(self.folder))
        self.daemon = None

    def __enter__(self):
        os.makedirs(os.path.join(self.top, SESSION))
        settings = os.path.join(self.folder, "settings")
        with open(settings, "w", encoding="utf-8") as file:
            file.write(SETTINGS)
        script = ('echo $$ >"$0/cgroup.procs" && exec unshare --cgroup --mount sh -c \'umount -R -l /sys/fs/cgroup && '
                  'mount -t cgroup2 none /sys/fs/cgroup && exec "$@"\' sh "$@"')
        self.daemon = subprocess.Popen(
            ["sh", "-c", script, self.top, self.machine.build.program("allotd"), "--foreground", "--run-dir", self.run_dir,
             "--config", settings], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + WAIT_S
        while not os.path.exists(os.path.join(self.run_dir, "allotd.sock")):
            if self.daemon.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"allotd does not start: {self.daemon.stderr.read()}")
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        if self.daemon:
            self.daemon.terminate()
            self.daemon.wait()
        for path, _, _ in os.walk(self.top, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(path)
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, command, user=0, cgroup=SESSION):
        """Runs a command as a user in a cgroup below the daemon's root, or with None in this process's own."""
        def enter():
            if cgroup:
                with open(os.path.join(self.top, cgroup, "cgroup.procs"), "w", encoding="utf-8") as file:
                    file.write(str(os.getpid()))
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
        return subprocess.run(command, preexec_fn=enter, capture_output=True, text=True, check=False, timeout=WAIT_S, cwd="/",
                              env=dict(os.environ, ALLOT_RUN_DIR=self.folder, HOME="/"))

    def say(self, program, user=0, cgroup=SESSION, before=()):
        """The two numbers that a Python program prints in a new process."""
        done = self.run([*before, sys.executable, "-c", program], user, cgroup)
        try:
            first, second = done.stdout.split()
        except ValueError as error:
            raise Failed(f"status {done.returncode}: {done.stderr}") from error
        return int(first), float(second)


def check(machine, tally, options):
    why = "it needs a real driver" if machine.sim else "it needs root" if os.geteuid() else \
        "no cgroup version 2" if not os.path.exists(os.path.join(CGROUPS, "cgroup.procs")) else None
    if why:
        tally.skip("the device guard", why)
        return
    user = pwd.getpwnam("nobody").pw_uid
    tenant = [machine.allot, "run", "--memory", "2GiB", "--name", "guarded", "--"]
    with machine.without_daemon(), Guarded(machine) as guarded:
        result, _ = guarded.say(CUINIT, user)
        tally.verdict(result == NO_DEVICE, "a user's program outside of allot run finds no GPU", f"cuInit: {result}")
        result, length_ms = guarded.say(CUINIT, user, before=tenant)
        tally.verdict(result == 0, "a user's program in allot run finds the GPU", f"cuInit: {result}, {length_ms:.0f} ms")
        # cuInit's own length varies by more than the limit from process to process, so the cost of opening a node is compared.
        pairs = [(guarded.say(OPEN), guarded.say(OPEN, cgroup=None)) for _ in range(PAIRS)]
        added_us = statistics.median(with_guard - without for (_, with_guard), (_, without) in pairs)
        error_us = 1.25 * statistics.stdev(one[1] - other[1] for one, other in pairs) / PAIRS ** 0.5
        count = pairs[0][0][0] * OPENS_PER_DESCRIPTOR
        tally.verdict(added_us * count <= ADDED_MOST_MS * 1000, f"the guard adds at most {ADDED_MOST_MS:g} ms to cuInit",
                      f"{added_us:.2f} us to each open (standard error {error_us:.2f}, of {pairs[0][1][1]:.1f}), so "
                      f"{added_us * count:.1f} us, if {count} nodes are opened")
