"""The freezer with containers that runc starts, which have their own namespaces, cgroups and root file system."""

import json
import os
import shutil
import signal
import subprocess

import pytest
from boxes import Boxes, hierarchies, why_not
from machines import BUILD, wait_until
from sim_peers import start_sim  # noqa: F401
from test_freezer import CARD_GIB, CONTEXT_MS, PAUSE_MS, hoard  # noqa: F401


def why_not_runc(directory):
    """Returns why runc makes no container here, or None. That depends on the kernel and on the machine's cgroups."""
    if not shutil.which("runc"):
        return "no runc"
    container = RuncContainer(directory, f"allot-probe-{os.getpid()}", None, ["/bin/true"])
    process = container.start()
    _, errors = process.communicate(timeout=60)
    container.remove()
    return None if process.returncode == 0 else f"runc: {errors.strip().splitlines()[-1:]}"


class RuncContainer:
    """One container with the host's programs and libraries, read-only, and the test's own directory."""

    def __init__(self, directory, number, cgroup, command, environment=(), shared=None):
        self.id = number
        self.bundle = directory / f"bundle-{self.id[:24]}"
        (self.bundle / "rootfs").mkdir(parents=True)
        self.state = directory / "runc"
        subprocess.run(["runc", "spec"], cwd=self.bundle, check=True)
        config = json.loads((self.bundle / "config.json").read_text())
        config["process"]["terminal"] = False
        config["process"]["args"] = list(map(str, command))
        config["process"]["env"] = [f"{name}={value}" for name, value in environment]
        config["root"]["readonly"] = False
        for path in filter(None, ("/usr", "/bin", "/lib", "/lib64", shared and str(shared),
                                  shared and str(BUILD))):
            if os.path.exists(path):
                config["mounts"].append({"destination": path, "type": "bind",
                                         "source": os.path.realpath(path),
                                         "options": ["rbind", "rw" if path == str(shared)
                                                     else "ro"]})
        config["mounts"] = [m for m in config["mounts"] if m["destination"] != "/sys/fs/cgroup"]
        config["linux"].pop("resources", None)
        config["linux"].pop("seccomp", None)
        config["linux"]["cgroupsPath"] = cgroup or f"/{self.id}"
        (self.bundle / "config.json").write_text(json.dumps(config))

    def runc(self, *arguments, **more):
        return subprocess.run(["runc", "--root", self.state, *arguments], text=True,
                              capture_output=True, check=False, timeout=60, **more)

    def start(self):
        return subprocess.Popen(["runc", "--root", self.state, "run", "--bundle", self.bundle,
                                 self.id], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def remove(self):
        self.runc("delete", "--force", self.id)


def remove_left(top):
    """Removes the cgroups that runc leaves above its own, in each hierarchy."""
    for mount in {path.parent for path in hierarchies().values()}:
        for name in ("*/" + top, top):
            for directory in mount.glob(name):
                for inner in [*directory.glob("docker"), directory]:
                    try:
                        inner.rmdir()
                    except OSError:
                        pass


@pytest.fixture
def runc(start_sim, tmp_path, hoard):  # noqa: F811
    reason = why_not("v2") and why_not("v1") or why_not_runc(tmp_path)
    if reason:
        remove_left(f"allot-probe-{os.getpid()}")
        pytest.skip(reason)
    boxes = Boxes("v2" if why_not("v2") is None else "v1", start_sim("h200"), tmp_path,
                  freeze_threshold="25GiB")
    shutil.copy(hoard, tmp_path / "hoard")
    environment = [("LD_LIBRARY_PATH", BUILD / "sim"), ("ALLOT_SIM_SOCKET", boxes.sim.socket),
                   ("PATH", "/usr/bin:/bin")]
    made = []

    def make(*command):
        number = f"{0xB0C50000 + len(made):x}".ljust(64, "0")
        made.append(RuncContainer(tmp_path, number, f"/{boxes.top.name}/docker/{number}",
                                  command, environment, tmp_path))
        return made[-1]

    boxes.make_runc = make
    yield boxes
    boxes.end_daemon(signal.SIGKILL)
    for container in made:
        container.remove()
    boxes.close()
    remove_left(boxes.top.name)
    remove_left(f"allot-probe-{os.getpid()}")


def test_a_container_waits_for_another(runc, tmp_path):
    hoard = tmp_path / "hoard"  # noqa: F811
    first = runc.make_runc(hoard, (CARD_GIB - 10) << 10, 32 << 10, 0, 60000)
    second = runc.make_runc(hoard, 20 << 10, 4 << 10, PAUSE_MS, 300, CONTEXT_MS)
    holder = first.start()
    wait_until(lambda: runc.state(first) in ("starting", "running"), what="the holder's task")
    line = holder.stdout.readline()
    while line and not line.startswith("full"):
        line = holder.stdout.readline()
    assert line, holder.stderr.read()
    waiter = second.start()
    wait_until(lambda: runc.state(second) == "waiting", what="the second to wait")
    assert not runc.container(first)["frozen_s"] > 1
    # Its processes are in another pid namespace; tasks have the host's pids.
    tasks = [t for t in runc.tasks()["tasks"] if t["container"] == second.id]
    assert [t["name"] for t in tasks] == ["hoard"] and not tasks[0]["ended"]
    os.kill(next(t["pid"] for t in runc.tasks()["tasks"] if t["container"] == first.id),
            signal.SIGKILL)
    assert waiter.wait(timeout=30) == 0, waiter.stderr.read()
    assert runc.state(second) == "ended"
    holder.wait(timeout=30)


def test_six_containers_with_room_for_three(runc, tmp_path):
    """Gil et al., Figure 4: memory for three of six. The threshold is the need of one."""
    runc.end_daemon()
    runc.config.write_text(runc.config.read_text().replace("25GiB", "45GiB"))
    runc.start_daemon()
    containers = [runc.make_runc(tmp_path / "hoard", 44 << 10, 4 << 10, 20, 700, CONTEXT_MS)
                  for _ in range(6)]
    started = [container.start() for container in containers]
    assert [process.wait(timeout=60) for process in started] == [0] * 6, runc.log.read_text()
    waited = [runc.container(container)["frozen_s"] for container in containers]
    assert sum(frozen > 0.3 for frozen in waited) >= 3, waited
