"""The memory cgroup that a swap arena is charged to, with real cgroups, so only root can run this."""

import os
import pathlib
import subprocess
import time

import pytest

from machines import wait_until
from python_tenant import MIB, Tenant
from test_swap import BUFFERS, pause, resume, swap_of

pytest.importorskip("cuda.bindings.driver")

V1 = pathlib.Path("/sys/fs/cgroup/memory")
V2 = pathlib.Path("/sys/fs/cgroup")
ARENA = 96 * MIB


class MemoryCgroup:
    """A memory cgroup that the test makes and removes."""

    def __init__(self):
        self.is_v1 = (V1 / "memory.limit_in_bytes").exists()
        self.dir = (V1 if self.is_v1 else V2) / f"allot-test-{os.getpid()}"
        try:
            self.dir.mkdir()
        except OSError as error:
            pytest.skip(f"no memory cgroup can be made here: {error}")
        if not (self.dir / self.limit_name()).exists():
            self.dir.rmdir()
            pytest.skip("cgroups here are made without the memory controller")

    def limit_name(self):
        return "memory.limit_in_bytes" if self.is_v1 else "memory.max"

    def limit(self, count):
        (self.dir / self.limit_name()).write_text(str(count))

    def used(self):
        name = "memory.usage_in_bytes" if self.is_v1 else "memory.current"
        return int((self.dir / name).read_text())

    def processes(self):
        return (self.dir / "cgroup.procs").read_text().split()

    def move(self, pid):
        (self.dir / "cgroup.procs").write_text(str(pid))

    def remove(self):
        for pid in self.processes():
            os.kill(int(pid), 9)
        wait_until(lambda: not self.processes(), what="an empty cgroup")
        # Its last charges may be released a moment later.
        for _ in range(50):
            try:
                return self.dir.rmdir()
            except OSError:
                time.sleep(0.1)
        return self.dir.rmdir()


@pytest.fixture
def cgroup():
    if os.geteuid() != 0:
        pytest.skip("only root may make cgroups")
    cgroup = MemoryCgroup()
    yield cgroup
    cgroup.remove()


def swappable_in(cgroup, machine, python, tmp_path, charge):
    """A swappable tenant whose program joins the cgroup before it uses the GPU; the daemon is elsewhere."""
    settings = tmp_path / "allotd.conf"
    settings.write_text(f"swap_arena_charge = {charge}\n")
    code = f"open('{cgroup.dir}/cgroup.procs', 'w').write('0')\n" + BUFFERS + """
look()
check()
look()
"""
    tenant = Tenant(machine, python, code,
                    options=("--on-full", "swap", "--swap-arena", f"{ARENA // MIB}MiB"),
                    environment={"ALLOT_CONFIG": str(settings)})
    tenant.line()
    wait_until(lambda: swap_of(machine), what="a swappable process")
    return tenant


def log_of(machine):
    return (machine.run_dir / "allotd.log").read_text()


@pytest.mark.parametrize("charge", ["tenant", "daemon"])
def test_the_arena_is_charged_to_the_configured_cgroup(cgroup, machine, python, tmp_path, charge):
    tenant = swappable_in(cgroup, machine, python, tmp_path, charge)
    wait_until(lambda: swap_of(machine)["arena_ready_bytes"] == ARENA, what="the arena")
    if charge == "tenant":
        wait_until(lambda: cgroup.used() >= ARENA, what="the charge")
    # The program alone uses less than that: the simulated GPU keeps its bytes elsewhere.
    assert (cgroup.used() >= ARENA) == (charge == "tenant"), cgroup.used()
    # The process of allotd that backed the arena with pages has left the cgroup.
    assert all("allotd" not in pathlib.Path(f"/proc/{pid}/cmdline").read_text()
               for pid in cgroup.processes())
    pause(machine)
    resume(machine)
    tenant.go()
    tenant.line()
    tenant.go()
    tenant.end()


def test_a_full_cgroup_limits_the_arena_and_kills_nothing(cgroup, machine, python, tmp_path):
    """The cgroup has too little room: the arena ends before its limit, other memory remains on the GPU, the program runs on."""
    cgroup.limit(110 * MIB)
    tenant = swappable_in(cgroup, machine, python, tmp_path, "tenant")
    wait_until(lambda: "stays on the GPU" in log_of(machine), what="the warning")
    warning = [line for line in log_of(machine).splitlines() if "swap arena" in line][0]
    assert "tenant 'a'" in warning and str(cgroup.dir) in warning and "Cannot allocate" in warning
    assert swap_of(machine)["arena_ready_bytes"] < ARENA
    done = machine.allot("pause", "a", "--swap-out", *machine.sim)
    assert done.returncode == 1 and "of host memory" in done.stderr, done.stderr
    assert swap_of(machine)["failed"] == 1
    assert swap_of(machine)["swapped_bytes"] == 0
    resume(machine)
    tenant.go()
    tenant.line()
    tenant.go()
    tenant.end()
    events = subprocess.run(["cat", f"{cgroup.dir}/memory.oom_control"
                             if cgroup.is_v1 else f"{cgroup.dir}/memory.events"],
                            capture_output=True, text=True, check=True).stdout
    assert "oom_kill 0" in events
