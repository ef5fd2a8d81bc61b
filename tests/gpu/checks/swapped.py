"""A program's memory off the card and back, in the middle of its run (tests/gpu/run --swap)."""

import time

from harness.job import Failed

from .memory import mib, near

OPTIONS = ["--on-full", "swap"]
MOVE_S = 60.0


def state(machine, tenant):
    """What `allot ps` says of the tenant's moves, or None."""
    for entry in machine.ps()["tenants"]:
        if entry["name"] == tenant:
            return entry["swap"]
    return None


def wait_for(machine, tenant, wanted):
    """The state when it is `wanted`; else what it was in the end."""
    deadline = time.monotonic() + MOVE_S
    while True:
        swap = state(machine, tenant)
        if (swap and swap["state"] == wanted) or time.monotonic() > deadline:
            return swap
        time.sleep(0.05)


def out_and_in(machine, tally, what, tenant, held):
    """`held()`: what NVML says that the program holds, all GPUs together. Afterwards it goes on."""
    before_bytes = held()
    # The simulated card's processes, and those that just began, may have nothing that moves.
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
