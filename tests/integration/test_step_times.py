"""A tenant's step time and steps a second: ps, top and metrics must agree with the program's own measurement. Only ratios are
checked, because the test machine runs other programs, too."""

import json

import pytest

from python_tenant import Tenant
from scrape import listen, scrape

pytest.importorskip("cuda.bindings.driver")

# One step in ten is as long as ten others. The test chooses how the program waits for a step. With "requests" it also idles
# now and then, like a server.
PROGRAM = """
import json
start()
module = ok(cu.cuModuleLoadData(b"x"))
kernel = ok(cu.cuModuleGetFunction(module, b"allot_sim_4000us_132b"))
event = ok(cu.cuEventCreate(0))
stream = ok(cu.cuStreamCreate(0))

def wait(wait_by):
    if wait_by in ("event", "requests"):
        ok(cu.cuEventRecord(event, stream))
        ok(cu.cuEventSynchronize(event))
    else:
        ok(cu.cuStreamSynchronize(stream) if wait_by == "stream" else cu.cuCtxSynchronize())

def step(kernels, wait_by):
    for i in range(kernels):
        ok(cu.cuLaunchKernel(kernel, 132, 1, 1, 128, 1, 1, 0, stream, 0, 0))
    wait(wait_by)

wait_by = look("ready")
step(1, wait_by)
durations, end = [], time.monotonic()
for i in range(60):
    if wait_by == "requests" and i % 20 == 0:
        time.sleep(0.5)
        end = time.monotonic()
    step(10 if i % 10 == 0 else 1, wait_by)
    # Measured from the end of the step before: a thread that loses its processor between two steps makes the second one longer.
    begin, end = end, time.monotonic()
    durations.append(end - begin)
look(json.dumps(sorted(durations)))
"""


def percentile(values, part):
    return values[min(int(part * len(values)), len(values) - 1)]


def run_steps(machine, python, wait_by):
    tenant = Tenant(machine, python, PROGRAM, name="steps")
    assert tenant.line() == "ready"
    tenant.go(wait_by)
    return tenant, json.loads(tenant.line())


@pytest.mark.parametrize("wait_by", ["context", "stream", "event", "requests"])
def test_step_times_agree_with_the_program(machine, python, tmp_path, wait_by):
    served = listen(machine, tmp_path)
    tenant, durations = run_steps(machine, python, wait_by)
    steps = tenant.device()["steps"]
    assert steps["p50_ms"] == pytest.approx(1e3 * percentile(durations, 0.5), rel=0.2)
    assert steps["p99_ms"] == pytest.approx(1e3 * percentile(durations, 0.99), rel=0.2)
    assert steps["p99_ms"] > 4 * steps["p50_ms"]

    page = scrape(served)
    assert page.value("allot_tenant_step_seconds_count", tenant="steps") == len(durations)
    assert page.value("allot_tenant_step_seconds_sum", tenant="steps") == pytest.approx(sum(durations), rel=0.1)
    shown = {quantile: page.value("allot_tenant_step_seconds", tenant="steps", quantile=quantile)
             for quantile in ("0.5", "0.99")}
    assert shown["0.5"] == pytest.approx(steps["p50_ms"] / 1e3, rel=0.1)
    assert shown["0.99"] == pytest.approx(steps["p99_ms"] / 1e3, rel=0.1)
    tenant.go()
    tenant.end()


def test_processes_of_a_tenant_are_merged(machine, python, tmp_path):
    served = listen(machine, tmp_path)
    one = machine.start("--name", "one", "--memory", "4GiB", "--", "sh", "-c", '"$@"; sleep 20', "sh",
                        *machine.load("--kernel-us", 4000, "--sync-every", 1, "--kernels", 50, "--seconds", 60,
                                      "--processes", 3))
    machine.wait_for_tenant("one", lambda tenant: tenant["devices"][0]["steps"] and not tenant["processes"])
    page = scrape(served)
    # The first wait of each process only begins a step.
    assert page.value("allot_tenant_step_seconds_count", tenant="one") == 3 * 49
    one.terminate()


def test_a_tenant_without_steps_shows_dashes(machine, python):
    holder = Tenant(machine, python, 'start()\np = ok(cu.cuMemAlloc(64 * MIB))\nlook("held")', name="holds")
    assert holder.line() == "held"
    assert holder.device()["steps"] is None
    assert "p99" not in machine.allot("ps", *machine.sim).stdout
    tenant, _ = run_steps(machine, python, "stream")
    table = machine.allot("ps", *machine.sim).stdout.splitlines()
    titles = next(line for line in table if line.startswith("TENANT"))
    cells = {line.split()[0]: line[:titles.index("per s") + len("per s")].split()[-3:] for line in table
             if line.startswith(("holds ", "steps "))}
    assert cells["holds"] == ["-", "-", "-"]
    assert all(cell[0].isdigit() for cell in cells["steps"]), table
    top = machine.allot("top", "--once", *machine.sim, environment={"COLUMNS": "160"})
    assert "P99" in top.stdout and "STEP/s" in top.stdout
    for one in (tenant, holder):
        one.go()
        one.end()
