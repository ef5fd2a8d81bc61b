"""Tenants on two simulated GPUs, with ranks that wait for each other (programs/ranks.c), as real processes. Bounds are wide,
because the test machine has few cores. tests/unit/policy/gang/test_device_gang.c has tighter bounds in virtual time."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from machines import wait_until
from held import compile_c, link_with_driver

pytestmark = pytest.mark.alone  # shares

ROUND_S = 0.005     # duration of a round of ranks.c, if it runs alone
SIM_TRAINING = Path(__file__).parent / "sim_training.py"
HALF = ["--memory", "1GiB", "--cores", 50, "--cores-limit", 100]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("gang") / "ranks", "ranks.c", *link_with_driver())


def start_singles(machine, seconds, begin):
    """Starts one tenant on each GPU. Their kernels differ in length, so that the GPUs' turns are not in step by chance."""
    return [machine.start_load("--gpu", gpu, *HALF, load=(
        "--kernel-us", kernel_us, "--seconds", seconds, "--start-at", begin))
            for gpu, kernel_us in ((0, 1000), (1, 3000))]


def test_a_gang_beside_one_tenant_on_each_gpu(machine2, ranks):
    """The gang gets a fair share of both GPUs, and never hangs. At least half of each charged second is work; with separate
    turns on each GPU it would be a third, because ranks spin."""
    begin = int(time.time()) + 3
    singles = start_singles(machine2, 12, begin)
    time.sleep(max(0, begin + 0.5 - time.time()))
    training = machine2.start("--gpu", "all", "--name", "training", *HALF, "--", "sh", "-c",
                              '"$@" && read -r line', "sh", ranks, "8", stdin=subprocess.PIPE)
    tenant = machine2.wait_for_tenant("training", lambda t: all(d["gang"] for d in t["devices"]))
    first = tenant["devices"][0]["gang_turns"]
    wait_until(lambda: machine2.tenants()["training"]["devices"][1]["gang_turns"] > first + 20,
               what="20 turns on both GPUs")
    half = json.loads(training.stdout.readline())
    used_s = [device["used_s"] for device in machine2.tenants()["training"]["devices"]]
    training.stdin.close()
    shares = [machine2.end_load(single)[0] for single in singles]
    print(half, used_s, *shares)
    charged_pct = [100 * used / half["seconds"] for used in used_s]
    assert all(30 < part < 64 for part in charged_pct), charged_pct
    for single, part in zip(shares, charged_pct):
        assert single.is_sound() and single.charged_pct > 0.6 * part, (shares, charged_pct)
    # If CPU time is short, tenants do less work in their GPU time, and a gang on two GPUs does least. That is not judged.
    if min(share.work_pct / share.charged_pct for share in shares) > 0.95:
        assert half["collectives"] * ROUND_S / max(used_s) > 0.5, (half, used_s, shares)
    assert half["longest_ms"] < 4000


def test_one_thread_that_uses_the_gpus_in_turn(machine2):
    """While the thread waits at one GPU's gate, it has no work for the other. Yet its turns are on both GPUs, because a turn on
    one alone would end at the other's gate."""
    begin = int(time.time()) + 3
    singles = start_singles(machine2, 10, begin)
    training = machine2.start("--gpu", "all", "--name", "training", *HALF, "--", sys.executable, SIM_TRAINING, "--serve",
                              "--ranks", "2", stdin=subprocess.PIPE)
    for line in "model resnet18 1", f"record 7 {begin + 1}":
        training.stdin.write(line + "\n")
    training.stdin.flush()
    time.sleep(max(0, begin + 3 - time.time()))
    before = machine2.tenants()["training"]["devices"]
    time.sleep(4)
    after = machine2.tenants()["training"]["devices"]
    shares = [machine2.end_load(single)[0] for single in singles]
    training.stdin.close()
    training.wait(20)
    grown = [{key: new[key] - old[key] for key in ("leases", "gang_turns", "used_s")} for old, new in zip(before, after)]
    print(grown, *shares)
    assert all(device["gang_turns"] > 10 for device in grown), grown
    assert all(device["gang_turns"] > 0.5 * device["leases"] for device in grown), grown
    assert all(share.is_sound() for share in shares), shares


def test_two_gpus_visible_and_one_used(machine2):
    """That is no gang, so the other GPU's tenant has that GPU alone."""
    begin = int(time.time()) + 3
    both = machine2.start_load("--gpu", "all", "--name", "both", *HALF, load=(
        "--seconds", 4, "--start-at", begin))
    singles = start_singles(machine2, 4, begin)
    time.sleep(max(0, begin + 2 - time.time()))
    devices = machine2.tenants()["both"]["devices"]
    assert [d["gang"] for d in devices] == [False, False]
    assert [d["gang_turns"] for d in devices] == [0, 0]
    shares = [machine2.end_load(both, "both")[0], *(machine2.end_load(one)[0] for one in singles)]
    assert all(share.is_sound() for share in shares), shares
    assert 40 < shares[0].charged_pct < 60 and shares[2].charged_pct > 85, shares
