"""Runs one program twice, natively and then in a tenant, and checks four things: both runs have the same results, the
tenant's ledger agrees with NVML, requests beyond the quota are refused, and the end frees everything.

The program writes JSON lines to stdout, among any other output:
  {"at":"hold","pids":[..],"name":".."}  it holds memory and the GPU is idle; it now waits for a line on
                        stdin. `pids` (default: the program and its children) use the GPU
  {"at":"over","refused":true,"what":".."}  it asked for more memory than `--quota BYTES` and went on. Only
                        the tenant's run has this argument. May come any number of times
  {"at":"end","digest":".."}  digest of its results; or "values":[..] with "rtol", the relative tolerance,
                        where two runs can't have bitwise equal results
  {"at":"skip","why":".."}  this machine lacks something that the program needs
"""

import json
import math
import re
import time

from harness.job import Failed
from harness.nvml import Nvml

from . import swapped
from .memory import mib, near, tolerance

START_S = 240           # an import alone can take a minute on a cold disk
SETTLE_S = 5.0          # the daemon measures memory that no call allocates only now and then
RELEASE_S = 5.0

# This shell outlives the program, so that the tenant does, too. "\n" first: the program may leave a line unfinished.
KEEP = '"$@"; printf "\\nended %s\\n" "$?"; read x'


class Broken(Exception):
    """The program did not keep to the protocol, or ended badly."""


class Cards:
    """The processes that NVML shows on each GPU of the machine."""

    def __init__(self, machine):
        first = machine.nvml
        self.cards = [first] + [Nvml(index, first.lib._name) for index in range(1, first.count())]

    def processes(self):
        """{GPU's index: {pid: bytes}}"""
        return {index: card.processes() for index, card in enumerate(self.cards)}


class Run:
    """One of the two runs, with the events that the program printed."""

    def __init__(self, machine, job, timeout_s):
        self.machine = machine
        self.job = job
        self.begin = time.monotonic()
        self.deadline = self.begin + timeout_s
        self.holds = 0
        self.overs = []
        self.end = self.why_skipped = self.status = None

    def follow(self, at_hold):
        """Reads the program's events until it has ended; calls at_hold(event) at each "hold"."""
        seen = 0
        while self.status is None:
            left_s = self.deadline - time.monotonic()
            if left_s <= 0:
                raise Failed(f"did not end in time{self.job.tail()}")
            line = self.job.wait_line(seen, left_s)
            if line is None:
                raise Broken(f"ended early, status {self.job.wait(10)}{self.job.tail()}")
            seen += 1
            if line.startswith("ended "):
                self.status = int(line.split()[1])
            elif line.startswith('{"at"'):
                self._take(json.loads(line), at_hold)
        self.seconds = time.monotonic() - self.begin

    def _take(self, event, at_hold):
        if event["at"] == "hold":
            self.holds += 1
            at_hold(event)
            self.job.say("on")
        elif event["at"] == "end":
            self.end = event
        elif event["at"] == "over":
            self.overs.append(event)
        elif event["at"] == "skip":
            self.why_skipped = event["why"]

    def check_finished(self):
        if self.status != 0:
            raise Broken(f"status {self.status}{self.job.tail()}")
        if self.why_skipped is None and self.end is None:
            raise Broken(f"never said its result{self.job.tail()}")


def devices_of(machine, name):
    """The tenant's devices in `allot ps`, and the tenant itself."""
    for tenant in machine.ps()["tenants"]:
        if tenant["name"] == name:
            return tenant["devices"], tenant
    return [], None


def used_by_program(processes, before, pids):
    """Bytes that NVML shows for the program's processes on one GPU. If it lists none of `pids`, it uses pids of
    another pid namespace; then all processes count that were not there in `before`."""
    known = [pid for pid in pids if pid in processes]
    if not known:
        known = [pid for pid in processes if pid not in before]
    return sum(processes[pid] for pid in known)


def compare_hold(tally, name, event, cards, before, machine, tenant, quota, job):
    """Checks on each of the tenant's GPUs that the ledger agrees with NVML, and that NVML shows no more than the quota."""
    pids = event.get("pids") or job.pids()
    unseen = event.get("unseen_bytes", 0)
    what = f"{name}, at {event['name']}" if event.get("name") else name
    deadline = time.monotonic() + SETTLE_S
    while True:
        devices, _ = devices_of(machine, tenant)
        now = cards.processes()
        rows = [(device["index"], device["memory_used_bytes"],
                 used_by_program(now[device["index"]], before[device["index"]],
                                 pids)) for device in devices]
        agree = bool(rows) and all(ledger is not None and used > 0 and
                                   near(ledger, used, unseen)
                                   for _, ledger, used in rows)
        if agree or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    told = "; ".join(f"GPU {index}: ledger {mib(ledger)}, NVML {mib(used)}"
                     for index, ledger, used in rows) or "no such tenant"
    tally.verdict(agree, f"{what}: the ledger agrees with NVML", told)
    within = bool(rows) and all(used <= quota + tolerance(used) for _, _, used in rows)
    tally.verdict(within, f"{what}: NVML shows no more than the quota",
                  f"{told}, quota {mib(quota)}")


def same(native, tenant):
    """(whether the two results are the same, text on how they were compared)"""
    if "digest" in native or "digest" in tenant:
        ours, theirs = tenant.get("digest"), native.get("digest")
        if ours == theirs:
            return True, f"bitwise, sha256 {str(ours)[:16]}"
        return False, (f"sha256 {str(theirs)[:16]} native, {str(ours)[:16]} in the tenant"
                       f"{apart(native, tenant)}")
    rtol = native["rtol"]
    ours, theirs = tenant["values"], native["values"]
    worst = furthest(theirs, ours)
    return worst <= rtol, f"{len(ours)} values, largest difference {worst:.2g}, allowed {rtol:g}"


def furthest(a, b):
    """The largest relative difference of two lists; infinity where they can't be compared."""
    if len(a) != len(b) or not a or not all(map(math.isfinite, [*a, *b])):
        return math.inf
    return max(abs(x - y) / max(abs(x), abs(y), 1e-30) for x, y in zip(a, b))


def apart(native, tenant):
    """Text on how far the values behind two unequal digests differ, if both runs printed values."""
    if "values" not in native or "values" not in tenant:
        return ""
    return f", values differ by {furthest(native['values'], tenant['values']):.2g}"


def check_release(machine, tenant):
    """(whether the ledger is empty and the tenant has no violations, details). The tenant outlives its program."""
    begin = time.monotonic()
    while True:
        devices, now = devices_of(machine, tenant)
        held = [device["memory_used_bytes"] for device in devices]
        empty = bool(held) and not any(held)
        if empty or time.monotonic() > begin + RELEASE_S:
            break
        time.sleep(0.02)
    after_s = time.monotonic() - begin
    bad = now is not None and (now["corrupt"] or now["violations"])
    text = f"{', '.join(mib(h) for h in held)} held {after_s:.2f} s after it"
    if bad:
        text += f", corrupt {now['corrupt']}, violations {now['violations']}"
    denied = sum(device["denied"] for device in devices)
    return empty and not bad, f"{text}, {denied} requests denied"


def check_end(machine, tally, name, tenant, run, native):
    released, told = check_release(machine, tenant)
    run.job.say("on")
    run.job.wait(10)
    ours = [line for line in run.job.errors if line.startswith(("allot[", "allot:", "allotd"))]
    tally.verdict(released and not ours, f"{name}: ends cleanly",
                  f"{told}; took {native.seconds:.1f} s native, {run.seconds:.1f} s in the tenant"
                  f"{': ' + ' | '.join(ours[:3]) if ours else ''}")


def move(machine, tally, name, event, cards, before, tenant, job):
    """Moves the tenant's memory off the card and back, if the tenant is swappable."""
    pids = event.get("pids") or job.pids()

    def held():
        return sum(used_by_program(now, before[index], pids)
                   for index, now in cards.processes().items())

    what = f"{name}, at {event['name']}" if event.get("name") else name
    swapped.out_and_in(machine, tally, what, tenant, held)


def run_tenant(machine, tally, name, command, quota, options, timeout_s, over, native, cards):
    tenant = re.sub("[^A-Za-z0-9]+", "-", name)
    before = cards.processes()

    def at_hold(event):
        compare_hold(tally, name, event, cards, before, machine, tenant, quota, job)
        if "swap" in options:
            move(machine, tally, name, event, cards, before, tenant, job)

    job = machine.tenant(tenant, ["/bin/sh", "-c", KEEP, "sh", *command, "--quota", str(quota)],
                         ["--memory", f"{quota >> 20}MiB", *options], stdin=True)
    run = Run(machine, job, timeout_s)
    try:
        run.follow(at_hold)
        run.check_finished()
        if run.why_skipped is not None:
            raise Broken(f"native it ran, in a tenant: {run.why_skipped}")
        good, how = same(native.end, run.end)
        if not good and machine.sim and "swap" in options:
            tally.skip(f"{name}: the same numbers as without allot",
                       "the simulated card keeps the bytes of 256 MiB that can be moved, no more")
        else:
            tally.verdict(good, f"{name}: the same numbers as without allot", how)
        if run.holds == 0:
            tally.bad(f"{name}: the ledger agrees with NVML", "the program never held")
        if over:
            told = run.overs or [{"refused": False, "what": "it never tried"}]
            tally.verdict(all(event["refused"] for event in told),
                          f"{name}: more than the quota is refused, and it goes on",
                          "; ".join(event.get("what", "") for event in told))
        check_end(machine, tally, name, tenant, run, native)
    finally:
        job.kill()


def run(machine, tally, name, command, quota_bytes, options=(), timeout_s=START_S, over=True):
    """`options`: further options of allot run. `over`: whether the program tries to exceed its quota."""
    job = machine.native(name, ["/bin/sh", "-c", KEEP, "sh", *command], stdin=True)
    native = Run(machine, job, timeout_s)
    try:
        native.follow(lambda event: None)
        native.check_finished()
    except (Broken, Failed) as error:
        tally.bad(f"{name}: without allot", str(error))
        return
    finally:
        job.kill()
    if native.why_skipped is not None:
        tally.skip(name, native.why_skipped)
        return
    try:
        run_tenant(machine, tally, name, command, quota_bytes, options, timeout_s, over, native,
                   Cards(machine))
    except (Broken, Failed) as error:
        tally.bad(f"{name}: in a tenant", str(error))
