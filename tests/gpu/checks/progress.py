"""Forward progress: runs each case of gpu-progress many times beside a tenant that saturates the GPU."""

import os
import tempfile
import time

from harness.load import Kernel, Loads

KERNEL = Kernel(1000, 132)
REPORT_S = 0.05
SILENCE_S = 1.0         # no tenant may be without progress for this long
FAIR = ["--memory", "4GiB", "--cores-limit", "100"]
ROLES = {"waitvalue": 1, "hostfunc": 1, "ipc": 2, "spin": 2, "persistent": 1, "sigstop": 2,
         "capture": 1}
NAMES = list(ROLES)
LONGEST_REP_S = 5       # of any case; a run's hard time limit is this times the repetitions


class Saturator:
    """A tenant that never stops launching. Measures its longest time without progress."""

    def __init__(self, machine, loads):
        self.job = machine.tenant("saturator", loads.command(
            KERNEL, "--seconds", "100000", "--report-every", str(REPORT_S)),
            [*FAIR, "--cores", "40"])
        self.job.wait_line(0, 60)

    def longest_silence_s(self, begin, end):
        """Longest time without a finished kernel between two Unix times."""
        last, longest = begin, 0.0
        for at, report in self.job.json():
            if begin <= at <= end and report.get("kernels"):
                longest = max(longest, at - last)
                last = at
        return max(longest, end - last - REPORT_S)

    def share(self, begin, end):
        kernels = sum(report.get("kernels", 0) for at, report in self.job.json()
                      if begin <= at <= end)
        return 100 * kernels * KERNEL.cost_us / 1e6 / (end - begin)


def start(machine, loads, name, role, share_file, reps):
    command = [machine.build.program("gpu-progress"), name, "--reps", str(reps), "--role",
               str(role)]
    iters = loads.calibrate(KERNEL)["iters"]
    command += ["--iters", str(iters)] if iters else []
    command += ["--share", share_file] if share_file else []
    return machine.tenant(f"{name}-{role}", command, [*FAIR, "--cores", "25"])


def run_case(machine, tally, loads, saturator, name, reps):
    roles = ROLES[name]
    # The shared file is on a tmpfs, because pages of an ordinary file can't be pinned for the GPU.
    with tempfile.TemporaryDirectory(prefix="allot-progress-", dir="/dev/shm") as folder:
        share_file = os.path.join(folder, "share") if roles == 2 else None
        begin = time.time()
        jobs = [start(machine, loads, name, role, share_file, reps) for role in range(roles)]
        limit = time.monotonic() + 60 + reps * LONGEST_REP_S
        try:
            states = [job.wait(max(1, limit - time.monotonic())) for job in jobs]
        finally:
            for job in jobs:
                job.kill()
        end = time.time()
    # In the case sigstop the last role drives the other, so its figures count.
    said = jobs[-1 if name == "sigstop" else 0].text()
    detail = (said[-1] if said else "said nothing").removeprefix(name + ": ")
    bad = [job for job, status in zip(jobs, states) if status != 0]
    if bad:
        detail = "; ".join(f"role {jobs.index(job)}: {(job.text() or ['said nothing'])[-1]}"
                           f"{job.tail()}" for job in bad)
    if saturator:
        silence = saturator.longest_silence_s(begin, end)
        detail += (f"; neighbour: {saturator.share(begin, end):.1f} %, longest without progress "
                   f"{1000 * silence:.0f} ms")
        tally.verdict(not bad and silence <= SILENCE_S, name, detail)
    else:
        tally.verdict(not bad, name, detail)


def check(machine, tally, options):
    loads = Loads(machine)
    loads.calibrate(KERNEL)
    saturator = None
    for name in options.progress:
        # The case sigstop needs no third tenant: the stopped tenant saturates the GPU itself.
        if name == "sigstop" and saturator:
            saturator.job.stop()
            saturator = None
        elif name != "sigstop" and not saturator:
            saturator = Saturator(machine, loads)
        reps = options.reps * 2 if name == "capture" else options.reps
        run_case(machine, tally, loads, saturator if name != "sigstop" else None, name, reps)
    if saturator:
        saturator.job.stop()
