"""A program allocates memory in every way, in random order, near its quota (tests/gpu/fuzz.c). Whenever it pauses, the
tenant's ledger must agree with NVML. NVML must never show more than the quota."""

import json
import threading
import time

from .memory import agree, check_exit, mib, tolerance

QUOTA = 4 << 30
STEPS = 10000
SILENCE_S = 120         # longest time between two pauses of the program
SAMPLE_S = 0.02


class Watch(threading.Thread):
    """Records the most memory that NVML ever shows for one process."""

    def __init__(self, machine, pid):
        super().__init__(daemon=True)
        self.machine = machine
        self.pid = pid
        self.most = self.samples = 0
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(SAMPLE_S):
            processes = self.machine.nvml.processes()
            # In another pid namespace the process has another pid; if NVML lists one process, it is that.
            used = processes.get(self.pid, sum(processes.values()) if len(processes) == 1 else 0)
            self.most = max(self.most, used)
            self.samples += 1

    def end(self):
        self.over.set()
        self.join()


class Fuzz:
    def __init__(self, machine, tally, job):
        self.machine, self.tally, self.job = machine, tally, job
        self.watch = None
        self.holds = self.apart = 0
        self.worst = 0      # the largest difference, and where
        self.where = ""

    def hold(self, event):
        pid, = event["pids"]
        if not self.watch:
            self.watch = Watch(self.machine, pid)
            self.watch.start()
        good, ledger, used = agree(self.machine, pid, event["unseen_bytes"])
        self.holds += 1
        if None in (ledger, used) or abs(ledger - used) >= self.worst:
            self.worst = 0 if None in (ledger, used) else abs(ledger - used)
            self.where = (f"{event['name']}: ledger {mib(ledger)}, of it {mib(event['unseen_bytes'])} "
                          f"managed, NVML {mib(used)}")
        if not good:
            self.apart += 1
            self.tally.bad(f"fuzz: ledger against NVML, {event['name']}",
                           f"ledger {mib(ledger)}, NVML {mib(used)}")
        self.job.say("on")

    def follow(self):
        """(the program's last event or None, its exit status)"""
        seen, end = 0, None
        while (line := self.job.wait_line(seen, SILENCE_S)) is not None:
            seen += 1
            event = json.loads(line) if line.startswith('{"at"') else {"at": None}
            if event["at"] == "hold":
                self.hold(event)
            elif event["at"] == "end":
                end = event
            elif line.startswith("ended "):
                return end, int(line.split()[1])
        return end, self.job.wait(10)


def judge(tally, fuzz, end, status, seconds):
    if status != 0 or not end:
        tally.bad("fuzz", f"status {status}{fuzz.job.tail()}")
        return
    ways = ", ".join(f"{name} {made}/{refused}" for name, (made, refused) in end["ways"].items())
    tally.verdict(all(made for made, _ in end["ways"].values()) and
                  end["refused"] * 100 > end["steps"] or end["steps"] < STEPS,
                  "fuzz: every way was granted, and a part refused", ways)
    tally.verdict(end["most_used"] <= QUOTA,
                  "fuzz: never over the quota by the tenant's own count",
                  f"{end['steps']} steps in {seconds:.0f} s, {end['made']} granted, "
                  f"{end['refused']} refused; most used {mib(end['most_used'])} of {mib(QUOTA)}")
    if not fuzz.apart:
        tally.good("fuzz: ledger against NVML",
                   f"{fuzz.holds} times, furthest apart at {fuzz.where}")
    watch = fuzz.watch
    tally.verdict(watch.samples > 0 and watch.most <= QUOTA + tolerance(QUOTA),
                  "fuzz: never over the quota by NVML",
                  f"{watch.samples} looks, most {mib(watch.most)} of {mib(QUOTA)}")
    tally.good("fuzz: all is back after the frees", f"{mib(end['left'])} apart from the start")


def check(machine, tally, options):
    seed = getattr(options, "seed", None) or int(time.time())
    steps = getattr(options, "steps", None) or STEPS
    print(f"# fuzz: --seed {seed}", flush=True)
    job = machine.tenant(
        "memory", ["/bin/sh", "-c", '"$@"; echo ended $?; read x', "sh",
                   machine.build.program("gpu-fuzz"), "--quota", str(QUOTA), "--steps",
                   str(steps), "--seed", str(seed)],
        ["--memory", f"{QUOTA >> 30}GiB"], stdin=True)
    fuzz = Fuzz(machine, tally, job)
    begin = time.monotonic()
    try:
        end, status = fuzz.follow()
        if fuzz.watch:
            fuzz.watch.end()
        judge(tally, fuzz, end, status, time.monotonic() - begin)
        check_exit(machine, tally)
    finally:
        if fuzz.watch:
            fuzz.watch.end()
        job.kill()
