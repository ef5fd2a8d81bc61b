"""Launches ahead of a lease (src/interpose/ahead.h) in processes on the simulated GPU: what a program sees,
by each way to the driver, beside a tenant that takes its turns; and that a launch does not wait for one.
The order of calls is held to the program's in tests/unit/interpose/test_ahead_order.c."""

import json
import time

import pytest

from held import compile_c, link_with_driver
from servers import start_servers

SETTINGS = "launch_ahead = 20ms\n"
SHARE = ["--memory", "1GiB", "--cores"]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("ahead") / "ahead", "ahead.c", *link_with_driver())


def last_line(process):
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return json.loads(out.splitlines()[-1])


@pytest.mark.parametrize("way", ["linked", "dlsym", "proc"])
def test_nobody_sees_that_a_launch_was_late(machine, tmp_path, program, way):
    start_servers(machine, tmp_path, SETTINGS)
    neighbour = machine.start(*SHARE, 50, "--", *machine.load("--kernel-us", 500, "--seconds", 5))
    said = last_line(machine.start(*SHARE, 40, "--", program, way, 3))
    print(way, said)
    assert said["rounds"] > 5
    last_line(neighbour)


def median_launch_ns(machine, ahead):
    """Of two tenants that saturate the GPU by turns, with kernels of 200 us."""
    begin = time.time() + 2
    loads = [machine.start(*SHARE, 45, "--", *machine.load(
        "--kernel-us", 200, "--seconds", 3, "--start-at", begin),
        environment={"ALLOT_LAUNCH_AHEAD": ahead}) for _ in range(2)]
    lines = [last_line(load) for load in loads]
    for line in lines:
        assert line["share_pct"] > 5, lines
    return min(line["launch_ns_median"] for line in lines)


@pytest.mark.alone  # how long launches take
def test_a_launch_does_not_wait_for_its_turn(machine, tmp_path):
    """It waits for the half of the time that is the other's, and for its own depth, or not at all."""
    start_servers(machine, tmp_path, SETTINGS)
    held, queued = (median_launch_ns(machine, ahead) for ahead in ("0", "1"))
    print(f"a launch takes {held} ns, and {queued} where it may be queued")
    assert queued * 4 < held
