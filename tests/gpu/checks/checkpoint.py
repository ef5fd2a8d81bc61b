"""A tenant that was not started as swappable is taken off the GPU by the driver's checkpoint call, and brought back.
Afterwards its memory, stream, event and graph are unchanged. While it is off, it holds no GPU memory, and another tenant
can use the room. If the daemon is killed meanwhile, the tenant still comes back. Prints the speed of each move."""

import os
import signal
import subprocess
import time

from harness.job import Failed

from .waiting import settled

GIB = 1 << 30
MIB = 1 << 20
NAME = "checkpoint"
START_S = 180
BACK_S = 120
SETTLE_S = 3.0


class Held:
    """A tenant that holds this much memory, and reports on request whether its contents are intact."""

    def __init__(self, machine, mib, name=NAME):
        program = machine.build.program("gpu-checkpoint")
        self.job = machine.tenant(name, [program, str(mib)], ["--memory", f"{mib + 2048}MiB"],
                                  stdin=True)
        self.seen = 0
        self.pid = int(self.word("pid", START_S))
        self.bytes = int(self.word("held", START_S))

    def line(self, seconds):
        line = self.job.wait_line(self.seen, seconds)
        if line is None:
            raise Failed(f"ended early, or says nothing in {seconds} s{self.job.tail()}")
        self.seen += 1
        return line

    def word(self, key, seconds):
        line = self.line(seconds)
        if not line.startswith(key + " "):
            raise Failed(f"says '{line}', not {key}")
        return line.split()[1]

    def check(self, tally, name, seconds=START_S):
        self.job.say("check")
        line = self.line(seconds)
        tally.verdict(line == "ok contents", f"contents {name}", line)


def order(machine, *words):
    """Runs an allot command: (seconds that it took, allot's error text or None)."""
    sim = ["--sim", machine.sim] if machine.sim else []
    begin = time.monotonic()
    done = subprocess.run([machine.allot, *words, *sim], env=machine.tenant_environment,
                          capture_output=True, text=True, timeout=600, check=False)
    return time.monotonic() - begin, done.stderr.strip() if done.returncode else None


def rate(held, seconds):
    return f"{held.bytes / GIB / seconds:.2f} GiB/s ({seconds:.2f} s)"


def there_and_back(machine, tally, held):
    """Moves the tenant off the card and back once. Returns allot's error text, or None."""
    gib = f"{held.bytes / GIB:g} GiB"
    before = machine.nvml.memory().used
    left_s, refused = order(machine, "pause", NAME, "--swap-out")
    if refused:
        return refused
    tally.verdict(settled(lambda: machine.nvml.memory().used <= before - held.bytes, SETTLE_S),
                  f"{gib} are off the card",
                  f"{(before - machine.nvml.memory().used) / MIB:.0f} MiB less, {rate(held, left_s)}")
    tally.verdict(settled(lambda: held.pid not in machine.nvml.processes(), SETTLE_S),
                  "NVML does not list its process",
                  f"of pid {held.pid}: {machine.nvml.processes()}")
    held.job.say("check")       # it waits, in the driver
    time.sleep(1)
    tally.verdict(len(held.job.lines) == held.seen, "its calls wait",
                  f"{len(held.job.lines) - held.seen} came back within a second")
    back_s, refused = order(machine, "resume", NAME)
    if refused:
        return refused
    line = held.line(BACK_S)
    tally.verdict(line == "ok contents", f"contents of {gib}, back", f"{line}, {rate(held, back_s)}")
    print(f"#   {gib}: out {rate(held, left_s)}, back {rate(held, back_s)}", flush=True)
    return None


def check_room(machine, tally, held):
    """Another tenant takes the room that the first one left. The first one can't come back then, and allot says why; once
    the other has ended, it comes back with all its memory."""
    total = machine.nvml.memory().total
    _, refused = order(machine, "pause", NAME, "--swap-out")
    if refused:
        tally.bad("leaves once more", refused)
        return
    free_mib = (total - machine.nvml.memory().used) // MIB
    other = Held(machine, (free_mib - 1024 - held.bytes // (2 * MIB)) // 4 * 4
                 if not machine.sim else 64, name="other")
    if not machine.sim:
        _, refused = order(machine, "resume", NAME)
        tally.verdict(refused and "come back" in refused, "no room to come back to is told",
                      refused or "it came back")
        tally.verdict(refused and refused.count("\n") == 0, "in one line", refused or "")
    other.job.kill()
    settled(lambda: machine.tenant_device("other") is None, 10)
    # It takes a moment until NVML shows the room as free and the daemon reads that.
    settled(lambda: order(machine, "resume", NAME)[1] is None, 20)
    held.check(tally, "after it had no room")


def check_daemon_killed(machine, tally, held):
    _, refused = order(machine, "pause", NAME, "--swap-out")
    if refused:
        tally.bad("leaves before the daemon is killed", refused)
        return
    os.kill(machine.daemon_pid(), signal.SIGKILL)
    # The tenant's helper may have brought it back, or the next daemon taken it off again. Resuming it works in both cases.
    settled(lambda: NAME in machine.tell("ps"), 20)
    settled(lambda: order(machine, "resume", NAME)[1] is None, 30)
    held.check(tally, "after the daemon was killed")


def check(machine, tally, options):
    sizes = [40] if machine.sim else [1024, options.checkpoint_gib * 1024]
    held = None
    for mib in sizes:
        if held:
            held.job.kill()
            settled(lambda: machine.tenant_device(NAME) is None, 10)
        held = Held(machine, mib)
        held.check(tally, "before")
        refused = there_and_back(machine, tally, held)
        if refused and "cuCheckpoint" in refused:
            tally.skip("checkpoint", refused)
            return
        if refused:
            tally.bad("there and back", refused)
            return
        refused = there_and_back(machine, tally, held)
        if refused:
            tally.bad("a second time", refused)
            return
    check_room(machine, tally, held)
    check_daemon_killed(machine, tally, held)
    held.job.kill()
