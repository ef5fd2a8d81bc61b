"""A tenant that is removed while its processes live: they must not use what is promised to others."""

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


class Grabber:
    """A process of a tenant of its own, made by `allot run`, that allocates when it is told to."""

    def __init__(self, machine, program, name, memory):
        self.process = machine.start("--name", name, "--memory", memory, "--", program, stdin=subprocess.PIPE)
        assert self.process.stdout.readline() == "ready\n", self.process.stderr.read()

    def take(self, gib):
        """Returns the driver's result: 0, or 2 for out of memory."""
        self.process.stdin.write(f"{gib * 1024}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=20) == 0


def refusal(machine, name, memory):
    done = machine.run("--name", name, "--memory", memory, "--", "true")
    assert done.returncode != 0
    return done.stderr


@pytest.mark.parametrize("restart", [False, True])
def test_its_processes_take_nothing_from_others(machine, tmp_path, grab, restart):
    start_servers(machine, tmp_path, SETTINGS)
    old = Grabber(machine, grab, "old", "119GiB")
    assert old.take(1) == 0
    assert request(machine, op="remove", name="old")["ending"]
    if restart:
        machine.kill_daemon()
    # What it does not hold is refused, before and after others came.
    assert old.take(100) == 2
    assert machine.tenants()["old"]["state"] == "ending"
    other = Grabber(machine, grab, "other", "20GiB")
    assert old.take(100) == 2
    assert other.take(19) == 0
    # Should it get round its quota, it finds what it was promised, not what others were.
    assert "does not fit" in refusal(machine, "big", "100GiB")
    assert "was removed" in refusal(machine, "old", "1GiB")
    old.end()
    new = Grabber(machine, grab, "old", "100GiB")
    assert new.take(99) == 0
