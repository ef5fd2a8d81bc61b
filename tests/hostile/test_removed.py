"""A tenant that is removed while its processes are alive: they must not use memory that is promised to others."""

import subprocess

import pytest

from machines import ROOT
from held import compile_c, link_with_driver
from servers import start_servers
from test_cdi import request
from test_violations import SETTINGS

PROGRAM = ROOT / "tests" / "hostile" / "programs" / "grab.c"


@pytest.fixture(scope="session")
def grab(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("grab") / "grab", PROGRAM, *link_with_driver())


class Allocator:
    """A process that allocates on request, in its own tenant of `allot run`."""

    def __init__(self, machine, program, name, memory):
        self.process = machine.start("--name", name, "--memory", memory, "--", program, stdin=subprocess.PIPE)
        assert self.process.stdout.readline() == "ready\n", self.process.stderr.read()

    def allocate(self, gib):
        """Returns the driver's result: 0, or 2 for out of memory."""
        self.process.stdin.write(f"{gib * 1024}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=20) == 0


def refusal(machine, name, memory):
    """The error of `allot run` for a tenant that must be refused."""
    done = machine.run("--name", name, "--memory", memory, "--", "true")
    assert done.returncode != 0
    return done.stderr


@pytest.mark.parametrize("restart", [False, True])
def test_processes_of_a_removed_tenant_take_nothing_from_others(machine, tmp_path, grab, restart):
    start_servers(machine, tmp_path, SETTINGS)
    old = Allocator(machine, grab, "old", "119GiB")
    assert old.allocate(1) == 0
    assert request(machine, op="remove", name="old")["ending"]
    if restart:
        machine.kill_daemon()
    # Further memory is refused, before and after other tenants are added.
    assert old.allocate(100) == 2
    assert machine.tenants()["old"]["state"] == "ending"
    other = Allocator(machine, grab, "other", "20GiB")
    assert old.allocate(100) == 2
    assert other.allocate(19) == 0
    # Even if it bypassed its quota, it could get only the memory that was promised to it.
    assert "does not fit" in refusal(machine, "big", "100GiB")
    assert "was removed" in refusal(machine, "old", "1GiB")
    old.end()
    new = Allocator(machine, grab, "old", "100GiB")
    assert new.allocate(99) == 0
