"""Tenants on two simulated cards whose ranks wait for each other (programs/ranks.c), as processes. The
bounds are wide: a machine that tests has few cores. On virtual time they are held to more
(tests/unit/arbiter/test_gang.c)."""

import json
import time

import pytest

from conftest import wait_until
from held import compile_c, link_with_driver

HALF = ["--memory", "1GiB", "--cores", 50, "--cores-limit", 100]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("gang") / "ranks", "ranks.c", *link_with_driver())


def ended(process, timeout=60):
    out, err = process.communicate(timeout=timeout)
    assert process.returncode == 0, err
    return json.loads(out.splitlines()[-1])


def start_singles(machine, seconds, begin):
    """One tenant a card; kernels of two lengths, so that the cards' turns are not in step by chance."""
    return [machine.start("--gpu", gpu, *HALF, "--", *machine.load(
        "--kernel-us", kernel_us, "--seconds", seconds, "--start-at", begin))
            for gpu, kernel_us in ((0, 1000), (1, 3000))]


def test_half_beside_one_on_each(machine2, ranks):
    """Half of its collectives, within 14 points, where each card by itself gives a fifth; no hang."""
    alone = machine2.start("--gpu", "all", "--memory", "1GiB", "--", ranks, "3")
    alone = ended(alone)
    begin = int(time.time()) + 3
    singles = start_singles(machine2, 12, begin)
    time.sleep(max(0, begin + 0.5 - time.time()))
    training = machine2.start("--gpu", "all", "--name", "training", *HALF, "--", ranks, "8")
    tenant = machine2.wait_for_tenant("training", lambda t: all(d["gang"] for d in t["devices"]))
    first = tenant["devices"][0]["gang_turns"]
    wait_until(lambda: machine2.tenants()["training"]["devices"][1]["gang_turns"] > first + 20,
               what="20 turns on both cards")
    half = ended(training)
    rate = half["collectives"] / half["seconds"] * alone["seconds"] / alone["collectives"]
    print(f"alone {alone}, beside one on each {half}: {100 * rate:.1f} %")
    assert 0.36 < rate < 0.64
    assert half["longest_ms"] < 500
    for single in singles:
        assert ended(single)["share_pct"] > 40


def test_two_cards_visible_and_one_used(machine2):
    """No gang: the other card's tenant has that card alone."""
    begin = int(time.time()) + 3
    both = machine2.start("--gpu", "all", "--name", "both", *HALF, "--", *machine2.load(
        "--seconds", 4, "--start-at", begin))
    singles = start_singles(machine2, 4, begin)
    time.sleep(max(0, begin + 2 - time.time()))
    devices = machine2.tenants()["both"]["devices"]
    assert [d["gang"] for d in devices] == [False, False]
    assert [d["gang_turns"] for d in devices] == [0, 0]
    assert 40 < ended(both)["share_pct"] < 60
    assert ended(singles[1])["share_pct"] > 85
    ended(singles[0])
