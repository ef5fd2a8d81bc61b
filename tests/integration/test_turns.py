"""Several processes of one tenant on one simulated card: they take turns within its leases, or run all at once with
`turns = off`. Real processes share the test machine's few cores, so bounds are wide and on counters only. The gain has a bar
in virtual time (tests/unit/policy/lease/test_turns_gain.c, test_bars.c)."""

import json
import os
import signal
import time

import pytest

from machines import wait_until
from held import compile_c, link_with_driver
from servers import start_servers

pytestmark = pytest.mark.alone  # who has turns, and when

HALF = ["--memory", "4GiB", "--cores", 50, "--cores-limit", 90]
TURNS = "slice_step = 0s\n"  # tuning: all take turns


@pytest.fixture(scope="module")
def partners(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("turns") / "partners", "partners.c",
                     *link_with_driver())


def shares(process):
    """Of each process of the tenant."""
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    lines = [json.loads(line) for line in out.splitlines()]
    return [line["share_pct"] for line in lines if "share_pct" in line]


def device_of(machine, name):
    (device,) = machine.tenants()[name]["devices"]
    return device


@pytest.mark.parametrize("turns", ["on", "off"])
def test_four_processes_beside_one(machine, tmp_path, turns):
    """Turns are taken, or not; the tenant gets one tenant's share, and its processes the same of that."""
    start_servers(machine, tmp_path, f"turns = {turns}\n", tuning=TURNS)
    begin = time.time() + 3
    load = ("--seconds", 5, "--start-at", begin)
    # Kernels of which one fills the card: in the same time four streams do as much of them as one.
    many = machine.start("--name", "many", *HALF, "--", *machine.load(
        *load, "--processes", 4, "--streams", 4, "--blocks", 264))
    one = machine.start("--name", "one", *HALF, "--", *machine.load(*load))
    time.sleep(max(0, begin + 4 - time.time()))
    device = device_of(machine, "many")
    each, (other,) = shares(many), shares(one)
    print(f"turns {turns}: {sum(each):.2f} of {[f'{part:.2f}' for part in each]} beside {other:.2f}, "
          f"{device['turns']} turns in {device['leases']} leases, given up "
          f"{device['turns_given_up']} times")
    assert abs(sum(each) - other) < 20 and max(each) < 2 * min(each)
    if turns == "on":
        assert device["turns"] >= 5
    else:
        assert device["turns"] == 0


@pytest.mark.parametrize("way", ["spin", "relay"])
def test_processes_that_need_each_other(machine, tmp_path, partners, way):
    """They end, and soon run at the same time instead."""
    start_servers(machine, tmp_path, "turns = on\n", tuning=TURNS)
    beside = machine.start("--name", "beside", *HALF, "--", *machine.load("--seconds", 10))
    machine.wait_for_tenant("beside", lambda t: t["state"] == "running")
    both = machine.start("--name", "both", *HALF, "--", partners, way, 5)
    device = machine.wait_for_tenant(
        "both", lambda t: t["devices"][0]["turns_given_up"])["devices"][0]
    assert device["turns"] > 0
    out, err = both.communicate(timeout=60)
    assert both.returncode == 0, err
    done = json.loads(out)
    print(way, done)
    assert done["rounds"] > (20 if way == "spin" else 100)
    assert done["longest_ms"] < 5000
    beside.terminate()


def test_a_gang_has_none(machine2):
    """Two processes on each of two cards: in the gang's turns all run, as one may need each of the others."""
    load = " ".join(machine2.load("--seconds", 60))
    singles = [machine2.start("--gpu", gpu, *HALF, "--", *machine2.load("--seconds", 60))
               for gpu in (0, 1)]
    ranks = " & ".join(f"CUDA_VISIBLE_DEVICES={gpu} {load}" for gpu in (0, 0, 1, 1))
    four = machine2.start("--gpu", "all", "--name", "four", *HALF, "--", "sh", "-c",
                          f"{ranks} & wait")

    def figures():
        devices = machine2.tenants()["four"]["devices"]
        return (min(d["gang_turns"] for d in devices), sum(d["turns"] for d in devices))

    machine2.wait_for_tenant("four", lambda t: len(t["processes"]) == 4 and
                             all(d["gang"] and d["gang_turns"] > 5 for d in t["devices"]))
    gang_turns, turns = figures()
    wait_until(lambda: figures()[0] > gang_turns + 20, what="turns of the gang")
    # None but where a card has no work of it for a moment, and it is no gang.
    assert figures()[1] - turns < 10
    for process in (four, *singles):
        process.terminate()


def test_one_that_dies_and_one_that_is_stopped(machine, tmp_path):
    """At any moment, its turn or not: the others go on, by turns."""
    start_servers(machine, tmp_path, "turns = on\n", tuning=TURNS)
    load = " ".join(machine.load("--seconds", 60))
    beside = machine.start("--name", "beside", *HALF, "--", *machine.load("--seconds", 60))
    three = machine.start("--name", "three", *HALF, "--", "sh", "-c",
                          f"{load} & {load} & {load} & wait")
    machine.wait_for_tenant("three", lambda t: len(t["processes"]) == 3 and
                            t["devices"][0]["turns"] > 10)

    def work_goes_on():
        before = device_of(machine, "three")
        wait_until(lambda: device_of(machine, "three")["leases"] > before["leases"] + 10,
                   what="leases")
        after = device_of(machine, "three")
        assert after["used_s"] > before["used_s"]

    pids = [process["pid"] for process in machine.tenants()["three"]["processes"]]
    os.kill(pids[0], signal.SIGKILL)
    work_goes_on()
    os.kill(pids[1], signal.SIGSTOP)
    work_goes_on()
    os.kill(pids[1], signal.SIGCONT)
    turns = device_of(machine, "three")["turns"]
    wait_until(lambda: device_of(machine, "three")["turns"] > turns + 10, what="turns again")
    for pid in pids[1:]:
        os.kill(pid, signal.SIGKILL)
    three.communicate(timeout=20)
    beside.terminate()
