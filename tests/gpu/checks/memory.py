"""Memory calls under a quota. tests/gpu/memory.c checks the results of its own calls; this module compares the
tenant's ledger with the memory that NVML shows for the process."""

import time

QUOTA = 4 << 30
MIB = 1 << 20
SETTLE_S = 2.0          # the ledger updates the sizes of pools and contexts only now and then


def tolerance(bytes_):
    return max(8 * MIB, bytes_ // 100)


def look(machine, pid):
    """(bytes in the ledger, bytes that NVML shows for the process); each may be None if unknown."""
    device = machine.tenant_device("memory")
    processes = machine.nvml.processes()
    used = processes.get(pid)
    if used is None and len(processes) == 1:    # another pid namespace
        used, = processes.values()
    return device and device["memory_used_bytes"], used


def near(ledger, used, unseen):
    """Whether both agree. The ledger includes `unseen` bytes that NVML may or may not show."""
    return -tolerance(used) <= ledger - used <= unseen + tolerance(used)


def agree(machine, pid, unseen=0):
    deadline = time.monotonic() + SETTLE_S
    while True:
        ledger, used = look(machine, pid)
        good = None not in (ledger, used) and near(ledger, used, unseen)
        if good or time.monotonic() > deadline:
            return good, ledger, used
        time.sleep(0.05)


def mib(value):
    return "unknown" if value is None else f"{value / MIB:.1f} MiB"


def check_probe(machine, tally, pid, name, held_bytes):
    good, ledger, used = agree(machine, pid)
    tally.verdict(good, f"ledger against NVML: {name}",
                  f"ledger {mib(ledger)}, NVML {mib(used)}, of these {mib(held_bytes)} by calls")


def check_exit(machine, tally):
    """The tenant outlives the process: its ledger must be empty then."""
    deadline = time.monotonic() + 5
    begin = time.monotonic()
    while True:
        device = machine.tenant_device("memory")
        held = device["memory_used_bytes"] if device else None
        if held == 0 or time.monotonic() > deadline:
            break
        time.sleep(0.02)
    tally.verdict(held == 0, "everything is back after the process's end",
                  f"{mib(held)} held {time.monotonic() - begin:.2f} s after it")


def check(machine, tally, options):
    program = machine.build.program("gpu-memory")
    job = machine.tenant(
        "memory", ["/bin/sh", "-c", f'"{program}" --quota {QUOTA}; echo ended $?; read x'],
        ["--memory", f"{QUOTA >> 30}GiB"], stdin=True)
    pid, seen = None, 0
    try:
        while (line := job.wait_line(seen, 60)) is not None:
            seen += 1
            word, _, rest = line.partition(" ")
            if word == "pid":
                pid = int(rest)
            elif word == "ok":
                tally.good(rest)
            elif word == "not":
                name, _, why = rest.removeprefix("ok ").partition(": ")
                tally.bad(name, why)
            elif word == "probe":
                name, held = rest.split()
                check_probe(machine, tally, pid, name, int(held))
                job.say("on")
            elif word == "ended":
                if rest not in ("0", "1"):
                    tally.bad("gpu-memory", f"status {rest}{job.tail()}")
                elif job.tail():
                    tally.bad("gpu-memory", job.tail())
                check_exit(machine, tally)
                return
        tally.bad("gpu-memory", f"ended early, status {job.wait(10)}{job.tail()}")
    finally:
        job.kill()
