"""Moves a program's memory off the card and back while it runs (tests/gpu/run --swap)."""

import time

from harness.job import Failed

from .memory import mib, near

OPTIONS = ["--on-full", "swap"]
MOVE_S = 60.0


def state(machine, tenant):
    """The tenant's swap state in `allot ps`, or None."""
    for entry in machine.ps()["tenants"]:
        if entry["name"] == tenant:
            return entry["swap"]
    return None


def wait_for(machine, tenant, wanted):
    """Waits for the state `wanted`; returns the last state, also after a timeout."""
    deadline = time.monotonic() + MOVE_S
    while True:
        swap = state(machine, tenant)
        if (swap and swap["state"] == wanted) or time.monotonic() > deadline:
            return swap
        time.sleep(0.05)


def out_and_in(machine, tally, what, tenant, held):
    """Moves the memory out and in again. `held()`: bytes that NVML shows for the program, over all GPUs."""
    before_bytes = held()
    # On a simulated card, or just after its start, a process may hold nothing that can be moved.
    if not state(machine, tenant):
        tally.skip(f"{what}: leaves the card and comes back", "nothing that can be moved")
        return
    try:
        machine.tell("pause", tenant, "--swap-out")
        out = wait_for(machine, tenant, "out")
        out_bytes = held()
        machine.tell("resume", tenant)
        back = wait_for(machine, tenant, "in")
    except Failed as error:
        tally.bad(f"{what}: leaves the card and comes back", str(error))
        return
    moved = before_bytes - out_bytes
    good = (out["state"] == "out" and back["state"] == "in" and not back["failed"] and
            near(moved, out["swapped_bytes"], 0))
    tally.verdict(good, f"{what}: leaves the card and comes back",
                  f"{mib(out['swapped_bytes'])} of {mib(before_bytes)} out, "
                  f"NVML {mib(moved)} less; "
                  f"then {back['state']}, {back['failed']} moves failed, {back['moved_s']:.2f} s")
