"""Turns end where a program's steps end (src/policy/lease/rules/steps.h). Here a training runs beside a load on one simulated
GPU: the library detects steps and reports them to the daemon, and turns end with them. A test in virtual time has a requirement
on the gain (tests/unit/policy/lease/rules/test_steps.c)."""

import time
from collections import Counter

import pytest

from held import compile_c, link_with_driver
from servers import start_servers
from trace_events import Trace

HALF = ["--memory", "4GiB", "--cores", 50, "--cores-limit", 90]
TURNS = "slice_step = 0s\n"  # tuning: no tenants are sliced, all take turns


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("steps") / "steps", "steps.c", *link_with_driver())


def train(machine, tmp_path, steps, tuning=""):
    """Runs a training beside another tenant, and a trace of two seconds once the training had 40 turns. Returns its device
    entry of `allot ps` before the trace, the trace, and how many turns ended with a step during the trace."""
    start_servers(machine, tmp_path, "", tuning=TURNS + tuning)
    load = machine.start("--name", "load", *HALF, "--", *machine.load("--seconds", 120))
    machine.wait_for_tenant("load", lambda t: t["state"] == "running")
    training = machine.start("--name", "training", *HALF, "--", steps, 120)
    tenant = machine.wait_for_tenant(
        "training", lambda t: t["devices"][0]["step_ms"] is not None and t["devices"][0]["leases"] >= 40)
    other = machine.tenants()["load"]["devices"][0]
    assert other["step_ms"] is None and other["step_turns"] == 0 and other["leases"] >= 20
    file = tmp_path / "trace.json"
    done = machine.allot("trace", "training", *machine.sim, "--seconds", 2, "--output", file)
    assert done.returncode == 0, done.stderr
    trace = Trace(file.read_text())
    more = machine.tenants()["training"]["devices"][0]["step_turns"] - tenant["devices"][0]["step_turns"]
    for process in (training, load):
        process.terminate()
        process.communicate(timeout=30)
    return tenant["devices"][0], trace, more


@pytest.mark.alone  # how long steps take
def test_turns_end_with_steps(machine, tmp_path, steps):
    device, trace, more = train(machine, tmp_path, steps)
    print(f"{device['step_turns']} of {device['leases']} turns end with a step, of {device['step_ms']:.1f} ms")
    assert 12 < device["step_ms"] < 40
    assert device["step_turns"] >= device["leases"] / 2
    # The recorded turns have `with_step` and the reason of their end; the other tenant has no steps. A program that loses its
    # CPU where its step ends is idle before its turn is over; on a busy machine, most turns end so.
    with_step = [lease["args"] for lease in trace.leases_of("training") if lease["args"].get("with_step")]
    reasons = Counter(args["end"] for args in with_step)
    assert 0 < len(with_step) <= more and set(reasons) <= {"turn", "cap", "idle"}, with_step
    assert reasons["turn"] + reasons["cap"] > 0, reasons
    assert not any(lease["args"].get("with_step") for lease in trace.leases_of("load"))


def test_turns_do_not_end_with_steps_when_switched_off(machine, tmp_path, steps):
    device, trace, more = train(machine, tmp_path, steps, "step_wait = 0s\n")
    assert device["step_turns"] == more == 0
    assert not any(lease["args"].get("with_step") for lease in trace.of("lease", "lease"))


def test_short_steps_are_sliced(machine, tmp_path, steps):
    """Two servers with steps of 5 ms run at once and get half each; a limit holds there, too."""
    start_servers(machine, tmp_path, "")
    unlimited = ["--memory", "4GiB", "--cores", 50, "--cores-limit", 100]
    names = "first", "second"
    servers = [machine.start("--name", name, *unlimited, "--", steps, 120, 10, 500) for name in names]

    def device(name):
        return machine.tenants()[name]["devices"][0]

    for name in names:
        machine.wait_for_tenant(name, lambda t: t["devices"][0]["mode"] == "sliced" and t["devices"][0]["used_s"] > 1)
    before = {name: device(name) for name in names}
    machine.wait_for_tenant("first", lambda t: t["devices"][0]["used_s"] > before["first"]["used_s"] + 2)
    used = [device(name)["used_s"] - before[name]["used_s"] for name in names]
    assert 0.3 < used[0] / sum(used) < 0.7, used
    done = machine.allot("set", "second", *machine.sim, "--cores-limit", 20, "--cores", 20)
    assert done.returncode == 0, done.stderr
    machine.wait_for_tenant("second", lambda t: t["devices"][0]["cores_limit_pct"] == 20)
    before = {name: device(name)["used_s"] for name in names}
    begin = time.monotonic()
    machine.wait_for_tenant("first", lambda t: t["devices"][0]["used_s"] > before["first"] + 2)
    assert device("second")["used_s"] - before["second"] < 0.3 * (time.monotonic() - begin)
    # Where the programs get too little CPU, a step may last too long for slices for a moment.
    for name in names:
        machine.wait_for_tenant(name, lambda t: t["devices"][0]["mode"] == "sliced")
    for server in servers:
        server.terminate()
        server.communicate(timeout=30)
