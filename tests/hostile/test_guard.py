"""Each command of `allot run` gets a cgroup of its own, and with guard_devices only processes there may open GPUs.

The daemon runs in a cgroup namespace of the test, so that the test has a user.slice of its own. NVIDIA's device files are nodes
without a driver here: opening one that the guard lets pass fails with ENXIO, else with EPERM."""

import contextlib
import errno
import itertools
import os
import pathlib
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile

import pytest

from boxes import hierarchies
from held import compile_c
from machines import BUILD, Machine, kill_servers, wait_until
from servers import start
from test_violations import HOLD, programs  # noqa: F401

PROGRAM = pathlib.Path(__file__).resolve().parent / "programs" / "open.c"
MOUNT = hierarchies().get("v2")
NOBODY = pwd.getpwnam("nobody")
# Starts a command whose parent is init, in a session of its own and without environment.
ORPHAN = ("sh", "-c", '(setsid env -i "$@" &)', "sh")
SESSION = "user.slice/user-65534.slice/session-1.scope"
numbers = itertools.count()

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not MOUNT, reason="needs root and cgroup version 2")


class Guarded(Machine):
    """A simulated machine whose daemon sees the cgroup `top` as the root."""

    def __init__(self, directory, settings):
        super().__init__(directory, "h200")
        self.directory, self.settings = directory, directory / "settings"
        self.top = pathlib.Path(MOUNT) / f"allot-guard-{os.getpid()}-{next(numbers)}"
        self.session = self.top / SESSION
        self.session.mkdir(parents=True)
        (self.top / "other").mkdir()
        self.settings.write_text(f"{settings}\nlinger = 60s\n")
        self.opener = compile_c(directory / "open", PROGRAM)
        self.node = directory / "nvidia0"
        os.mknod(self.node, stat.S_IFCHR | 0o666, os.makedev(195, 0))
        self.node.chmod(0o666)
        self.run_dir.mkdir(parents=True)
        (directory / "cards").write_text("[gpu]\n")
        start("allot-sim", "--socket", self.run_dir / "sim.sock", "--spec", directory / "cards")
        self.start_daemon()

    def start_daemon(self):
        """Starts allotd in the cgroup `top` and in a namespace in which that is the root."""
        script = ('echo $$ > "$0/cgroup.procs" && exec unshare --cgroup --mount sh -c \'umount -R -l /sys/fs/cgroup && '
                  'mount -t cgroup2 none /sys/fs/cgroup && exec "$@"\' sh "$@"')
        done = subprocess.run(["sh", "-c", script, self.top, BUILD / "allotd", "--run-dir", self.run_dir, "--sim-socket",
                               self.run_dir / "sim.sock", "--nvml", BUILD / "sim" / "libnvidia-ml.so.1", "--config",
                               self.settings], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=30)
        if "bpf" in done.stderr and "not permitted" in done.stderr:
            pytest.skip(done.stderr)
        assert done.returncode == 0, done.stderr

    def placed(self, command, cgroup=SESSION, user=NOBODY.pw_uid, **more):
        """Starts a command in a cgroup, as a user."""
        def enter():
            (self.top / cgroup / "cgroup.procs").write_text(str(os.getpid()))
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
        process = subprocess.Popen(list(map(str, command)), preexec_fn=enter, env=self.environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
        self.started.append(process)
        return process

    def opening(self, *where, **more):
        """The error of opening the GPU's node."""
        return self.placed([self.opener, self.node], *where, **more).wait(timeout=20)

    def tenant(self, name, *command, **more):
        return self.placed([BUILD / "allot", "run", *self.sim, "--memory", "1GiB", "--name", name, "--", *command], **more)

    def cgroups(self):
        return sorted(self.top.rglob("allot-*"))

    def close(self):
        self.clean()
        for folder in [*sorted((one for one in self.top.rglob("*") if one.is_dir()), reverse=True), self.top]:
            wait_until(lambda: is_removed(folder), what="an empty cgroup")  # noqa: B023


def is_removed(cgroup):
    """Ends the processes in a cgroup, and tries to remove it. That fails for a moment after its last process has ended."""
    if not cgroup.exists():
        return True
    for pid in (cgroup / "cgroup.procs").read_text().split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    with contextlib.suppress(OSError):
        cgroup.rmdir()
    return not cgroup.exists()


@pytest.fixture
def guarded():
    """Makes a Guarded with settings. Other users may enter its folder."""
    with contextlib.ExitStack() as stack:
        def make(settings="guard_devices = on"):
            folder = pathlib.Path(tempfile.mkdtemp(prefix="allot-guard-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            folder.chmod(0o755)
            made = Guarded(folder, settings)
            stack.callback(made.close)
            return made
        yield make


@pytest.fixture(autouse=True)
def reachable():
    if subprocess.run(["test", "-x", BUILD / "allot"], user=NOBODY.pw_uid, group=NOBODY.pw_gid, extra_groups=[],
                      check=False).returncode:
        pytest.skip("user nobody can't reach the build")


def test_in_sessions_only_tenants_may_open_gpus(guarded):
    machine = guarded()
    assert machine.opening() == errno.EPERM
    assert machine.opening("other") == errno.ENXIO
    assert machine.opening(user=0) == errno.ENXIO
    inside = machine.tenant("a", machine.opener, machine.node)
    assert inside.wait(timeout=30) == errno.ENXIO, inside.stderr.read()
    assert machine.opening() == errno.EPERM
    wait_until(lambda: not machine.cgroups(), what="no cgroup of an ended tenant")


def test_named_users_may_open_gpus(guarded):
    machine = guarded("guard_devices = daemon,nobody")
    assert machine.opening() == errno.ENXIO
    assert machine.opening(user=NOBODY.pw_uid - 1) == errno.EPERM


def test_what_a_command_leaves_behind_may_open_no_gpu(guarded):
    machine = guarded()
    script = f'read -r line < {machine.directory}/pipe; "$0" "$1"; echo $? > {machine.directory}/answer'
    os.mkfifo(machine.directory / "pipe")
    (machine.directory / "answer").touch()
    (machine.directory / "answer").chmod(0o666)
    (machine.directory / "pipe").chmod(0o666)
    done = machine.tenant("a", *ORPHAN, "sh", "-c", script, machine.opener, machine.node)
    assert done.wait(timeout=30) == 0, done.stderr.read()
    wait_until(lambda: not machine.tenants() and not machine.cgroups(), what="the tenant's end")
    (machine.directory / "pipe").write_text("go\n")
    wait_until((machine.directory / "answer").read_text, what="the orphan's answer")
    assert int((machine.directory / "answer").read_text()) == errno.EPERM


def test_the_guard_outlives_a_killed_daemon_and_no_other(guarded):
    machine = guarded()
    held = machine.tenant("held", "sleep", "60")
    machine.wait_for_tenant("held", lambda tenant: True)
    kill_servers(*machine.daemons())
    assert machine.opening() == errno.EPERM
    machine.start_daemon()
    assert machine.opening() == errno.EPERM
    # The new daemon knows the cgroup of the tenant that it took over, and the old daemon's filter is gone.
    joined = machine.cgroups()[0].relative_to(machine.top)
    assert machine.opening(joined) == errno.ENXIO
    held.terminate()
    for pid in machine.daemons():
        os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not machine.daemons(), what="the daemon's end")
    assert machine.opening() == errno.ENXIO


@pytest.mark.parametrize("value, part", [("daemon,nosuchuser", "'nosuchuser'"), ("", "guard_devices")])
def test_unknown_users_are_refused(tmp_path, value, part):
    settings = tmp_path / "settings"
    settings.write_text(f"guard_devices = {value}\n")
    done = subprocess.run([BUILD / "allotd", "--check-config", settings], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert part in done.stderr


def test_an_orphan_stays_its_tenants(guarded, programs):  # noqa: F811
    machine = guarded("guard_devices = off\ncensus_interval = 50ms")
    environment = f"LD_LIBRARY_PATH={programs}:{BUILD}/sim"
    machine.tenant("a", "sh", "-c", '"$@"; exec sleep 60', "sh", *ORPHAN, environment,
                   f"ALLOT_SIM_SOCKET={machine.run_dir}/sim.sock", programs / "other", *HOLD, user=0)
    tenant = machine.wait_for_tenant("a", lambda t: t["offenders"])
    offender, = tenant["offenders"]
    assert offender["sign"] == "in the cgroup of the tenant's command"


def test_a_command_that_starts_ever_new_offenders_is_ended(guarded, programs):  # noqa: F811
    machine = guarded("guard_devices = off\ncensus_interval = 50ms\non_violation = end")
    script = 'trap "" TERM; while :; do "$@"; done'
    process = machine.tenant("a", "sh", "-c", script, "sh", "env", "-i", f"LD_LIBRARY_PATH={programs}:{BUILD}/sim",
                             f"ALLOT_SIM_SOCKET={machine.run_dir}/sim.sock", programs / "other", *HOLD, user=0)
    assert process.wait(timeout=60) != 0
    wait_until(lambda: not machine.tenants() and not machine.cgroups(), what="the tenant's end")
    assert "all processes of its command" in (machine.run_dir / "allotd.log").read_text()
