"""The shares of tenants that run on a simulated card at the same time, compared with the same tenants in turns."""

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
    """Kernels that fill the card, limits that are guarantees: parts of the SMs."""
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
    """`pace` of allot ps --json: of a tenant that shares space. Its speed is learned while it is alone; beside one that takes
    more than its guarantee it has its own, and the other is held for it."""
    load = shared.load("--seconds", 60, "--blocks", 8192)     # they fill the card
    lends = ["--cores-limit", "100"]

    def pace(name):
        tenant = shared.tenants().get(name)
        return tenant["devices"][0]["pace"] if tenant else None

    def start(name, cores):
        return shared.start("--memory", "1GiB", "--name", name, *space(cores, *lends), "--", *load)

    started = [start("seventy", 70)]
    wait_until(lambda: (pace("seventy") or {}).get("known"), what="its speed")
    assert 0.5 < pace("seventy")["speed"] < 2 and pace("seventy")["told_s"] > 0
    started.append(start("twenty", 20))
    wait_until(lambda: (pace("twenty") or {}).get("pace_pct"), what="a pace of the one that has more than its guarantee")
    # The pace falls until the guarantee is there.
    wait_until(lambda: pace("twenty")["held_s"] > 0 and pace("seventy")["share_pct"] > 65, what="its guarantee")
    held = pace("twenty")
    assert not held["known"] and held["pace_pct"] >= 20
    assert pace("seventy")["pace_pct"] is None and pace("seventy")["held_s"] < 0.5
    started.append(shared.start("--memory", "1GiB", "--name", "turns", "--cores", "5", "--", *load))
    wait_until(lambda: "turns" in shared.tenants(), what="one that takes turns")
    assert pace("turns") is None
    for process in started:
        process.terminate()
