"""The shares of tenants that run on a simulated GPU at the same time, compared with the same tenants taking turns."""

import json
import subprocess
import time

import pytest

from machines import BUILD, wait_until

pytestmark = pytest.mark.alone  # shares

SECONDS = 5
CORES = (45, 30, 15)


def work_of(process):
    """Waits for the load's end; returns its work, in percent of the work that it does alone."""
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return [line["share_pct"] for line in map(json.loads, out.splitlines()) if "share_pct" in line][-1]


def run_together(machine, blocks, terms):
    """Runs one load for each list of options, all at once; returns the work of each."""
    load = machine.load("--seconds", SECONDS, "--start-at", time.time() + 3, "--blocks", blocks,
                        "--warmup", 1)
    return [work_of(p) for p in [machine.start("--memory", "1GiB", *options, "--", *load)
                                 for options in terms]]


def space_options(cores, *more):
    return ["--sharing", "space", "--cores", cores, *more]


@pytest.fixture(name="shared")
def fixture_shared(machine):
    help_text = subprocess.run([BUILD / "allot", "run", "--help"], capture_output=True, text=True, check=False).stdout
    if "--sharing" not in help_text:
        pytest.skip("allot run has no --sharing here")
    return machine


def test_shares_of_a_saturated_gpu(shared):
    """Kernels fill the GPU, and limits equal guarantees: each tenant gets its part of the SMs."""
    got = run_together(shared, 8192, [space_options(cores) for cores in CORES])
    print([f"{part:.1f}" for part in got], f"{sum(got):.1f}")
    for part, cores in zip(got, CORES):
        assert abs(part / sum(got) - cores / sum(CORES)) < 0.08


def test_small_kernels_run_concurrently(shared):
    """Each kernel fills 0.57 of the GPU: together they do more work than the GPU does for one, which is impossible in turns."""
    got = run_together(shared, 132, [space_options(cores, "--cores-limit", 100) for cores in CORES])
    turns = run_together(shared, 132, [["--cores", cores] for cores in CORES])
    print([f"{part:.1f}" for part in got], [f"{part:.1f}" for part in turns])
    assert sum(turns) < 105
    assert sum(got) > 130


def test_pace_slows_tenants_above_their_guarantee(shared):
    """`pace` in allot ps --json, for tenants that share space. A tenant's speed is measured while it is alone. Beside a tenant
    above its guarantee it still gets its own guarantee, because the other is slowed down."""
    load = shared.load("--seconds", 60, "--blocks", 8192)     # the kernels fill the GPU
    no_limit = ["--cores-limit", "100"]

    def pace(name):
        tenant = shared.tenants().get(name)
        return tenant["devices"][0]["pace"] if tenant else None

    def start(name, cores):
        return shared.start("--memory", "1GiB", "--name", name, *space_options(cores, *no_limit), "--", *load)

    started = [start("seventy", 70)]
    wait_until(lambda: (pace("seventy") or {}).get("known"), what="the measured speed")
    assert 0.5 < pace("seventy")["speed"] < 2 and pace("seventy")["told_s"] > 0
    started.append(start("twenty", 20))
    wait_until(lambda: (pace("twenty") or {}).get("pace_pct"), what="a pace of the tenant above its guarantee")
    # The pace falls until the other tenant gets its guarantee.
    wait_until(lambda: pace("twenty")["held_s"] > 0 and pace("seventy")["share_pct"] > 65, what="the guarantee")
    slowed = pace("twenty")
    assert not slowed["known"] and slowed["pace_pct"] >= 20
    assert pace("seventy")["pace_pct"] is None and pace("seventy")["held_s"] < 0.5
    started.append(shared.start("--memory", "1GiB", "--name", "turns", "--cores", "5", "--", *load))
    wait_until(lambda: "turns" in shared.tenants(), what="a tenant that takes turns")
    assert pace("turns") is None
    for process in started:
        process.terminate()
