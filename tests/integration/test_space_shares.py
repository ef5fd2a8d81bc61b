"""Tenants that share a simulated card at the same time: what each gets of it, beside the same in turns."""

import json
import subprocess
import time

import pytest

from machines import BUILD, wait_until

pytestmark = pytest.mark.alone  # shares

SECONDS = 5
CORES = (45, 30, 15)


def work_of(process):
    """Work done, in percent of what the program does alone."""
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return [line["share_pct"] for line in map(json.loads, out.splitlines()) if "share_pct" in line][-1]


def together(machine, blocks, terms):
    """One load for each list of options, all at once; what each did."""
    load = machine.load("--seconds", SECONDS, "--start-at", time.time() + 3, "--blocks", blocks,
                        "--warmup", 1)
    return [work_of(p) for p in [machine.start("--memory", "1GiB", *options, "--", *load)
                                 for options in terms]]


def space(cores, *more):
    return ["--sharing", "space", "--cores", cores, *more]


@pytest.fixture(name="shared")
def fixture_shared(machine):
    said = subprocess.run([BUILD / "allot", "run", "--help"], capture_output=True, text=True, check=False)
    if "--sharing" not in said.stdout:
        pytest.skip("allot run has no --sharing here")
    return machine


def test_shares_of_a_card_that_all_want(shared):
    """Kernels that fill the card: by their guarantees."""
    got = together(shared, 8192, [space(cores) for cores in CORES])
    print([f"{part:.1f}" for part in got], f"{sum(got):.1f}")
    for part, cores in zip(got, CORES):
        assert abs(part / sum(got) - cores / sum(CORES)) < 0.08


def test_kernels_that_leave_room(shared):
    """0.57 of the card each: together they do more than the card does for one, which in turns they can't."""
    got = together(shared, 132, [space(cores, "--cores-limit", 100) for cores in CORES])
    turns = together(shared, 132, [["--cores", cores] for cores in CORES])
    print([f"{part:.1f}" for part in got], [f"{part:.1f}" for part in turns])
    assert sum(turns) < 105
    assert sum(got) > 130


def test_what_it_goes_by(shared):
    """`pace` of allot ps --json: of who shares space; each runs alone now and then to be timed, and is held for the other."""
    load = shared.load("--seconds", 60)
    started = [shared.start("--memory", "1GiB", "--name", name, *options, "--", *load)
               for name, options in (("sixty", space(60)), ("forty", space(40)), ("turns", ["--cores", "5"]))]

    def known():
        tenants = shared.tenants()
        paces = [tenants[name]["devices"][0]["pace"] for name in ("sixty", "forty") if name in tenants]
        return paces if len(paces) == 2 and all(pace and pace["basis"] == "known" for pace in paces) else None

    for pace in wait_until(known, what="the speeds of both"):
        assert 0.5 < pace["speed"] < 2
        assert pace["trials"] >= 1 and pace["trials_s"] > 0 and pace["held_s"] > 0 and pace["told_s"] > 0
        assert pace["unused_s"] >= 0
    assert shared.tenants()["turns"]["devices"][0]["pace"] is None
    for process in started:
        process.terminate()
