"""Several processes of one tenant on one simulated GPU: they take turns within its leases, or run all at once with
`turns = off`. Real processes share the test machine's few cores, so limits are wide and on counters only. Tests in virtual time
have a requirement on the gain (tests/unit/policy/lease/test_turns_gain.c, test_bars.c)."""

import json
import os
import signal
import time

import pytest

from machines import wait_until
from held import compile_c, link_with_driver
from servers import start_servers

pytestmark = pytest.mark.alone  # shares, and the order of turns

HALF = ["--memory", "4GiB", "--cores", 50, "--cores-limit", 90]
TURNS = "slice_step = 0s\n"  # tuning: no tenants are sliced, all take turns


@pytest.fixture(scope="module")
def partners(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("turns") / "partners", "partners.c",
                     *link_with_driver())


def shares(process):
    """Waits for the tenant's end; returns the share of each of its processes."""
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    lines = [json.loads(line) for line in out.splitlines()]
    return [line["share_pct"] for line in lines if "share_pct" in line]


def device_of(machine, name):
    (device,) = machine.tenants()[name]["devices"]
    return device


@pytest.mark.parametrize("turns", ["on", "off"])
def test_four_processes_share_one_tenants_time(machine, tmp_path, turns):
    """With turns or without, the tenant gets one tenant's share, and its processes equal parts of that."""
    start_servers(machine, tmp_path, f"turns = {turns}\n", tuning=TURNS)
    begin = time.time() + 3
    load = ("--seconds", 5, "--start-at", begin)
    # One kernel fills the GPU, so four streams do as many kernels as one in the same time.
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


@pytest.mark.parametrize("kind", ["spin", "relay"])
def test_turns_stop_for_processes_that_wait_for_each_other(machine, tmp_path, partners, kind):
    """The daemon soon lets them run at the same time, so that they end."""
    start_servers(machine, tmp_path, "turns = on\n", tuning=TURNS)
    other = machine.start("--name", "other", *HALF, "--", *machine.load("--seconds", 10))
    machine.wait_for_tenant("other", lambda t: t["state"] == "running")
    both = machine.start("--name", "both", *HALF, "--", partners, kind, 5)
    device = machine.wait_for_tenant(
        "both", lambda t: t["devices"][0]["turns_given_up"])["devices"][0]
    assert device["turns"] > 0
    out, err = both.communicate(timeout=60)
    assert both.returncode == 0, err
    done = json.loads(out)
    print(kind, done)
    assert done["rounds"] > (20 if kind == "spin" else 100)
    assert done["longest_ms"] < 5000
    other.terminate()


def test_a_gang_has_no_turns_within_the_tenant(machine2):
    """Two processes on each of two GPUs: in a turn of the gang all run, as each may need the others."""
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
    # Turns within the tenant occur only while one GPU has no work of it for a moment, so that it is no gang.
    assert figures()[1] - turns < 10
    for process in (four, *singles):
        process.terminate()


def test_turns_continue_beside_a_killed_or_stopped_process(machine, tmp_path):
    """Whether the process had its turn or not, the others continue to take turns."""
    start_servers(machine, tmp_path, "turns = on\n", tuning=TURNS)
    load = " ".join(machine.load("--seconds", 60))
    other = machine.start("--name", "other", *HALF, "--", *machine.load("--seconds", 60))
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
    wait_until(lambda: device_of(machine, "three")["turns"] > turns + 10, what="more turns")
    for pid in pids[1:]:
        os.kill(pid, signal.SIGKILL)
    three.communicate(timeout=20)
    other.terminate()
