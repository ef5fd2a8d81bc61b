"""CDI devices for container engines: the specifications that `allot cdi` writes, and a real podman that uses them."""

import json
import os
import random
import shutil
import signal
import socket
import subprocess


import pytest
from machines import BUILD, GIB, wait_until
from engines import Podman, find
from held import GOVERNED, can_mount, compile_c, link_with_driver
from servers import restart_daemon, start_servers

MOUNTS = {"/run/allot/tenant", "/etc/ld.so.preload", "/run/allot/sim", "/run/allot/sim.sock"}


class Devices:
    """Calls `allot cdi` on a machine. The CDI files are in the test's `directory`."""

    def __init__(self, machine, directory):
        self.machine = machine
        self.directory = directory

    def cdi(self, *arguments, output=True, **more):
        if output:
            arguments = [*arguments, "--output", self.directory]
        return self.machine.allot("cdi", *arguments, *self.machine.sim, **more)

    def create(self, name, *terms, gpus="GPU 0"):
        done = self.cdi("create", name, *terms)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"allot.dev/gpu={name}: {gpus}, {self.path(name)}\n"
        return json.loads(self.path(name).read_text())

    def path(self, name):
        return self.directory / f"allot-{name}.json"

    def refuse(self, *arguments, status=1, output=True):
        done = self.cdi(*arguments, output=output)
        assert done.returncode == status and done.stderr.count("\n") == 1, done
        return done.stderr

    def list(self):
        done = self.cdi("list", "--json", output=False)
        assert done.returncode == 0, done.stderr
        return {claim["tenant"]: claim for claim in json.loads(done.stdout)}

    def remove_all(self):
        for name in self.list():
            assert self.cdi("remove", name).returncode == 0


@pytest.fixture
def devices(machine, tmp_path):
    directory = tmp_path / "cdi"
    directory.mkdir()
    return Devices(machine, directory)


def edits_of(spec, name, version="0.3.0"):
    assert spec["cdiVersion"] == version and spec["kind"] == "allot.dev/gpu"
    (device,) = spec["devices"]
    assert device["name"] == name
    edits = device["containerEdits"]
    environment = dict(line.split("=", 1) for line in edits["env"])
    mounts = {mount["containerPath"]: mount for mount in edits["mounts"]}
    return environment, mounts


def test_create_writes_a_specification(devices):
    spec = devices.create("web", "--memory", "4GiB", "--cores", "30", "--cores-limit", "60")
    environment, mounts = edits_of(spec, "web")
    assert environment["ALLOT_SOCKET"] == "/run/allot/tenant/allot.sock"
    assert environment["CUDA_DEVICE_MEMORY_LIMIT_0"] == "4096m"
    assert environment["CUDA_DEVICE_SM_LIMIT"] == "60"
    (library,) = set(mounts) - MOUNTS
    assert library.startswith("/run/allot/lib/") and MOUNTS < set(mounts)
    for mount in mounts.values():
        assert os.path.exists(mount["hostPath"])
        assert mount["options"] == ["ro", "nosuid", "nodev", "bind"]
    # The preloaded library exists under that name. It is a copy that only its owner may change.
    with open(mounts["/etc/ld.so.preload"]["hostPath"]) as file:
        assert file.read() == f"{library}/liballot.so\n"
    copy = f"{mounts[library]['hostPath']}/liballot.so"
    with open(copy, "rb") as a, open(BUILD / "liballot.so", "rb") as b:
        assert a.read() == b.read()
    assert os.stat(copy).st_mode & 0o777 == 0o755
    assert os.stat(devices.path("web")).st_mode & 0o777 == 0o644
    claim = devices.list()["web"]
    assert claim["key"] == "cdi/web" and claim["parked"] is None and claim["processes"] == 0
    (device,) = claim["devices"]
    assert device["memory_bytes"] == 4 * GIB and device["cores_limit_pct"] == 60
    # A second device has another tenant and the same library, and takes nothing of the first one's memory.
    other = devices.create("1st", "--on-full", "swap", "--memory", "1GiB")
    environment, others = edits_of(other, "1st", version="0.5.0")
    assert environment["CUDA_OVERSUBSCRIBE"] == "true"
    assert others[library] == mounts[library]
    assert others["/run/allot/tenant"]["hostPath"] != mounts["/run/allot/tenant"]["hostPath"]
    assert devices.machine.tenants()["web"]["devices"][0]["memory_quota_bytes"] == 4 * GIB
    assert "web" in devices.cdi("list", output=False).stdout
    devices.remove_all()
    assert list(devices.directory.iterdir()) == []
    assert not os.path.exists(mounts["/run/allot/tenant"]["hostPath"])
    devices.machine.wait_until_gone()
    assert os.path.exists(copy)     # a container that was started with it may be started again


def test_a_device_of_several_gpus(machine2, tmp_path):
    devices = Devices(machine2, tmp_path)
    environment, _ = edits_of(devices.create("pair", "--gpu", "all", "--memory", "2GiB", gpus="GPUs 0, 1"), "pair")
    assert environment["CUDA_DEVICE_MEMORY_LIMIT_1"] == "2048m"
    assert environment["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert [d["index"] for d in devices.list()["pair"]["devices"]] == [0, 1]
    devices.remove_all()


def test_a_device_for_each_gpu(machine2, tmp_path):
    """`allot cdi gpus` makes one device for each GPU, with its unpromised memory; a second call changes nothing."""
    devices = Devices(machine2, tmp_path)
    devices.create("part", "--gpu", "1", "--memory", "40GiB", gpus="GPU 1")
    for _ in range(2):
        done = devices.cdi("gpus")
        assert done.returncode == 0, done.stderr
    assert done.stdout.count("exists already, left as it is") == 2
    claims = devices.list()
    assert set(claims) == {"part", "gpu0", "gpu1"}
    assert [claims[f"gpu{i}"]["devices"][0]["index"] for i in (0, 1)] == [0, 1]
    assert claims["gpu1"]["devices"][0]["memory_bytes"] is None
    quota = [machine2.tenants()[f"gpu{i}"]["devices"][0]["memory_quota_bytes"] for i in (0, 1)]
    assert quota[0] - quota[1] == 40 * GIB
    environment, _ = edits_of(json.loads(devices.path("gpu0").read_text()), "gpu0")
    assert "CUDA_DEVICE_MEMORY_LIMIT_0" not in environment
    devices.remove_all()


def test_bad_requests_are_refused(devices):
    devices.create("web", "--memory", "4GiB")
    before = devices.list()
    for arguments, status, message in [
            (["create", "web"], 1, "'web' is in use"),
            (["create", "a", "--memory", "1TiB"], 1, "more than the GPU has"),
            (["create", "a", "--memory", "139GiB"], 1, "is unpromised"),
            (["create", "a", "--gpu", "7"], 1, "7"),
            (["create", "a", "--cores", "50", "--cores-limit", "20"], 2, "less than --cores 50"),
            (["create", "a", "--on-full", "wait"], 2, "needs --memory"),
            (["create", "a b"], 2, "not a name"),
            (["create", "a-"], 2, "must end with a letter or digit"),
            (["create"], 2, "write one name"),
            (["remove", "b"], 1, "there is no device 'b'")]:
        assert message in devices.refuse(*arguments, status=status)
    assert "create, gpus, remove or list" in devices.refuse("make", "a", status=2, output=False)
    # If the file cannot be written, no device is made.
    failed = devices.cdi("create", "b", "--output", devices.directory / "no" / "such", output=False)
    assert failed.returncode == 1 and "--output" in failed.stderr
    assert devices.list() == before
    assert "belongs to claim 'cdi/web'" in request(devices.machine, op="remove", name="web")["error"]
    # A file without its claim is removed, with a message.
    devices.path("gone").write_text("{}")
    done = devices.cdi("remove", "gone")
    assert done.returncode == 0 and "no longer had" in done.stderr and not devices.path("gone").exists()
    devices.remove_all()


def test_a_changed_quota_outlives_the_daemon(devices):
    """After a daemon is killed, the next one has the quota of `allot set`."""
    devices.create("web", "--memory", "4GiB")
    done = devices.machine.allot("set", "web", "--memory", "6GiB", *devices.machine.sim)
    assert done.returncode == 0, done.stderr
    kill_daemon(devices.machine)
    shutil.rmtree(devices.machine.run_dir / "claims")
    assert devices.machine.run("--", "true").returncode == 0    # starts the next one
    assert devices.list()["web"]["devices"][0]["memory_bytes"] == 6 * GIB
    assert devices.machine.tenants()["web"]["devices"][0]["memory_quota_bytes"] == 6 * GIB
    devices.remove_all()


def test_a_quota_below_the_reserve_lowers_it(devices):
    """After a daemon is killed, the next one makes the claim again, with a reserve of at most the quota."""
    assert devices.machine.run("--", "true").returncode == 0    # starts a daemon
    done = request(devices.machine, op="claim", name="web", on_full="wait",
                   devices=[{"memory_bytes": 8 * GIB, "reserve_bytes": 6 * GIB}])
    assert done["ok"], done
    done = devices.machine.allot("set", "web", "--memory", "4GiB", *devices.machine.sim)
    assert done.returncode == 0, done.stderr
    assert devices.machine.tenants()["web"]["devices"][0]["memory_reserve_bytes"] == 4 * GIB
    kill_daemon(devices.machine)
    shutil.rmtree(devices.machine.run_dir / "claims")
    assert devices.machine.run("--", "true").returncode == 0    # starts the next one
    assert devices.machine.tenants()["web"]["devices"][0]["memory_reserve_bytes"] == 4 * GIB
    devices.remove_all()


# -- a daemon that is killed --

def request(machine, **body):
    """Sends one request of docs/reference/protocol.md, without `allot`. Returns the answer, or None if the daemon went away."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(machine.run_dir / "allotd.sock"))
            connection.sendall(json.dumps({"version": 1, **body}).encode() + b"\n")
            reply = b""
            while not reply.endswith(b"\n"):
                more = connection.recv(65536)
                if not more:
                    return None
                reply += more
        except OSError:
            return None
    return json.loads(reply)


def kill_daemon(machine):
    (pid,) = [pid for pid, line in machine.servers().items() if "allotd " in line]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: pid not in machine.servers(), what="the daemon's death")


def churn(machine, prefix):
    """Allocates and releases until the daemon is gone. Returns the claims that must exist, and the one that may."""
    there = set()
    for i in range(100000):
        name = f"{prefix}-{i}"
        reply = request(machine, op="claim", name=name,
                        devices=[{"memory_bytes": GIB, "cores_pct": 0.5}])
        if not reply:
            return there, name
        assert reply["ok"], reply
        if i % 4 != 3 and not request(machine, op="release", name=name):
            return there, name
        if i % 4 == 3:
            there.add(name)
    pytest.fail("the daemon was not killed")


def test_a_daemon_killed_during_allocations(devices):
    """Killed at random points: each answered claim exists, and one that was not answered exists completely or not at all."""
    machine, seed, sum_there = devices.machine, random.Random(1), 0
    devices.create("first", "--memory", "1GiB")
    for round_ in range(20):
        (pid,) = [pid for pid, line in machine.servers().items() if "allotd " in line]
        killer = subprocess.Popen(["sh", "-c", 'sleep "$1"; kill -9 "$2"', "sh",
                                   str(seed.uniform(0, 0.1)), str(pid)])
        answered, unsure = churn(machine, f"c{round_}")
        killer.wait(timeout=10)
        wait_until(lambda: pid not in machine.servers(), what="the daemon's death")  # noqa: B023
        assert machine.run("--", "true").returncode == 0
        answered.add("first")
        there = set(devices.list())
        assert answered <= there <= answered | {unsure}, (answered, there, unsure)
        # There are as many tenants and directories as claims, and the GPU's memory is not overcommitted.
        assert there <= set(machine.tenants())
        assert len(list((machine.run_dir / "claims").iterdir())) == len(there)
        gpu = machine.ps()["devices"][0]
        assert len(there) * GIB <= gpu["promised_bytes"] <= gpu["memory_bytes"]
        for name in there - {"first"}:
            assert request(machine, op="release", name=name)["ok"]
        sum_there += len(answered)
    assert sum_there > 20   # some claims besides "first"
    devices.remove_all()


# -- podman --

class CdiPodman(Podman):
    """Podman with its own /etc/cdi, in a mount namespace whose /etc is a copy."""

    @classmethod
    def why_not(cls):
        if why := super().why_not():
            return why
        return None if can_mount() else "no mount namespaces"

    def start(self):
        self.configure()
        etc = self.directory / "etc"
        subprocess.run(["cp", "-a", "/etc", etc], check=True)
        self.specs = etc / "cdi"
        self.specs.mkdir(exist_ok=True)
        self.namespace = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c",
             'mount --bind "$1" /etc && echo ready && exec sleep 3600', "sh", etc],
            stdout=subprocess.PIPE, text=True)
        self.processes.append(self.namespace)
        assert self.namespace.stdout.readline() == "ready\n"

    def call(self, *command, **more):
        inside = ["nsenter", f"--mount=/proc/{self.namespace.pid}/ns/mnt", f"--wd={self.directory}"]
        return super().call(*inside, find(command[0]), *command[1:], **more)


@pytest.fixture(scope="module")
def podman(tmp_path_factory):
    why = CdiPodman.why_not()
    if why:
        pytest.skip(f"podman: {why}")
    engine = CdiPodman(tmp_path_factory.mktemp("p") / "e")
    try:
        engine.start()
        engine.run("probe", ["/bin/sleep", "0"])
    except RuntimeError as error:
        engine.__exit__()
        pytest.skip(f"podman: {error}")
    yield engine
    engine.__exit__()


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    out = tmp_path_factory.mktemp("programs")
    return {"way": compile_c(out / "way", "way.c", "-ldl"),
            "hoard": compile_c(out / "hoard", *link_with_driver(), "hoard.c")}


# The simulated GPU needs these, but an engine's exec does not pass on the device's environment.
SIMULATED = ["--env=LD_LIBRARY_PATH=/run/allot/sim", "--env=ALLOT_SIM_SOCKET=/run/allot/sim.sock"]


class Box:
    """A container with a CDI device. start() makes it."""

    def __init__(self, podman, devices, name, programs):
        self.podman, self.devices, self.name = podman, devices, name
        self.programs = programs
        shutil.copy(devices.path(name), podman.specs)
        self.shared = {os.path.dirname(path) for path in programs.values()}

    def start(self, *command):
        self.podman.run(self.name, command, shared=self.shared,
                        options=[f"--device=allot.dev/gpu={self.name}"])
        return self

    def exec(self, *command):
        done = self.podman.call(*self.podman.base, "exec", *SIMULATED, self.name, *command)
        return done.stdout.splitlines(), done.returncode

    def start_exec(self, *command):
        self.podman.check(*self.podman.base, "exec", "--detach", *SIMULATED, self.name, *command)

    def logs(self):
        self.podman.check(*self.podman.base, "wait", self.name)
        return self.podman.check(*self.podman.base, "logs", self.name).splitlines()

    def tenant(self):
        return self.devices.machine.tenants()[self.name]

    def remove(self):
        if self.name in self.podman.made:
            self.podman.remove(self.name)
            self.podman.made.remove(self.name)
            shutil.rmtree(self.podman.directory / f"rootfs-{self.name}")
        (self.podman.specs / f"allot-{self.name}.json").unlink()


@pytest.fixture
def box(podman, devices, programs):
    """A container with a device of 4 GiB, not started yet."""
    devices.create("web", "--memory", "4GiB", "--cores", "30")
    box = Box(podman, devices, "web", programs)
    yield box
    box.remove()
    # If the test has not removed it. This may fail: the daemon ends soon after its last tenant.
    devices.cdi("remove", "web", "--force")


def test_podman_sees_its_quota(box):
    assert box.start(box.programs["way"], "local").logs() == GOVERNED
    device = box.tenant()["devices"][0]
    assert device["denied"] == 1 and device["memory_used_bytes"] == 0


def hold(box, mib):
    """Starts a process in the container that holds so much memory for a minute."""
    box.start_exec(box.programs["hoard"], mib, mib, 0, 60000)
    wait_until(lambda: box.tenant()["devices"][0]["memory_used_bytes"] >= mib << 20,
               what="memory in use")


def test_podman_exec_belongs_to_the_tenant(box):
    box.start("sleep", "1000")
    # exec gets nothing of the device's environment, and is governed all the same.
    assert box.exec("sh", "-c", 'echo "[$ALLOT_SOCKET]"') == (["[]"], 0)
    assert box.exec(box.programs["way"], "local") == (GOVERNED, 0)
    for lie in ("", "/tmp/no.sock"):
        assert box.exec("env", f"ALLOT_SOCKET={lie}", box.programs["way"], "local") == (GOVERNED, 0)
    assert box.tenant()["devices"][0]["denied"] == 3
    # Memory of all the container's processes counts.
    hold(box, 2500)
    lines, _ = box.exec(box.programs["way"], "local")
    assert lines[:2] == ["cuInit 0", "fits 2"], lines


def test_podman_exec_after_a_killed_daemon(box):
    box.start("sleep", "1000")
    hold(box, 2500)
    kill_daemon(box.devices.machine)
    assert box.devices.machine.run("--", "true").returncode == 0
    wait_until(lambda: box.tenant()["devices"][0]["memory_used_bytes"] >= 2500 << 20)
    lines, _ = box.exec(box.programs["way"], "local")
    assert lines[:2] == ["cuInit 0", "fits 2"], lines


def test_removing_a_device_in_use_needs_force(box):
    box.start("sleep", "1000")
    hold(box, 100)
    assert "in use by 1 process: " in box.devices.refuse("remove", "web")
    assert box.devices.path("web").exists() and "web" in box.devices.list()
    assert box.devices.cdi("remove", "web", "--force").returncode == 0
    assert "web" not in box.devices.list() and not box.devices.path("web").exists()
    # Its process and the container continue.
    lines, status = box.exec("sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    assert status == 0 and f"{box.programs['hoard']} 100 100" in lines[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a file system needs root")
def test_full_disk(machine, tmp_path):
    """With any amount of free space: if the claim or its CDI file cannot be written, there is no claim."""
    disk, output = tmp_path / "disk", tmp_path / "cdi"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=755", "none", disk], check=True)
    try:
        start_servers(machine, tmp_path, f"state_dir = {disk}/state\n")
        (disk / "cdi").mkdir()
        output.symlink_to(disk / "cdi")
        devices = Devices(machine, output)
        # The last size is room for the containers' library only.
        for free_kib in [*range(0, 240, 4), 1024, (BUILD / "liballot.so").stat().st_size // 1024]:
            with open(disk / "ballast", "wb", buffering=0) as file:
                room = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
                os.posix_fallocate(file.fileno(), 0, max(1, room - free_kib * 1024))
            done = devices.cdi("create", "a", "--memory", "20GiB", "--cores", "80")
            assert done.returncode == 1 and ("No space left" in done.stderr or "disk is full" in done.stderr), done
            assert devices.list() == {} and not list((disk / "cdi").iterdir()), (free_kib, done.stderr)
            (disk / "ballast").unlink()
            restart_daemon(machine, tmp_path)
            assert devices.list() == {}, free_kib
            shutil.rmtree(disk / "state", ignore_errors=True)
            restart_daemon(machine, tmp_path)
        devices.create("a", "--memory", "20GiB", "--cores", "80")
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)
