"""Runs of allot-load: kernels of known cost, several tenants at the same time, one common window.

A share is the kernels that a tenant finished in the window, over what one tenant without allot,
alone, finishes in such a time (measured in the same run)."""

import bisect
import statistics
import time
from dataclasses import dataclass

from .job import Failed

SETUP_S = 2.0       # from a tenant's start until it is ready: daemon, context, module
SETTLE_S = 1.0      # estimates and credits settle before the window begins
TAIL_S = 0.3        # everyone still runs when the window ends
LATE_S = 0.25
REPORT_S = 0.1
EXACT_US = 500      # from there on a simulated kernel takes what its name says, launch and all


@dataclass(frozen=True)
class Kernel:
    cost_us: int
    blocks: int

    def __str__(self):
        cost = f"{self.cost_us} us" if self.cost_us < 1000 else f"{self.cost_us / 1000:g} ms"
        return f"{self.blocks} blocks, {cost}"


@dataclass
class Load:
    """One tenant of a run. options: those of allot run; None: native."""
    name: str
    kernel: Kernel
    options: list = None
    more: tuple = ()        # further options of allot-load
    mode: tuple = ()        # those of them that change what a kernel costs, so native has them too
    environment: dict = None    # native: what is added to that of all


class Series:
    """Kernels done against time, from a run's reports."""

    def __init__(self, reports):
        self.at = [0.0]
        self.done = [0]
        for report in reports:
            self.at.append(report["t_s"])
            self.done.append(self.done[-1] + report["kernels"])

    def done_at(self, t):
        """Between two reports the work is taken as even."""
        i = bisect.bisect_left(self.at, t)
        if i == 0:
            return 0.0
        if i == len(self.at):
            raise Failed(f"reports end at {self.at[-1]:.2f} s, before {t:.2f} s")
        part = (t - self.at[i - 1]) / (self.at[i] - self.at[i - 1])
        return self.done[i - 1] + part * (self.done[i] - self.done[i - 1])

    def rate(self, begin, end):
        return (self.done_at(end) - self.done_at(begin)) / (end - begin)


class Together:
    """Several processes of one tenant, as one series."""

    def __init__(self, series):
        self.series = series

    def done_at(self, t):
        return sum(one.done_at(t) for one in self.series)

    def rate(self, begin, end):
        return sum(one.rate(begin, end) for one in self.series)


@dataclass
class Outcome:
    """The results of one tenant. Shares are in percent of native alone."""
    share_pct: float
    windows_pct: list       # share of each whole second of the window
    last: dict              # allot-load's last line; of several processes, that of the first
    series: Series = None
    rate: float = None      # native, alone
    settle_s: float = 0.0   # the window's begin and length, from the common start
    seconds: float = 0.0

    def windows(self, width_s, begin=None, end=None):
        """Shares of windows so wide, of the common window or another part of the run."""
        begin = self.settle_s if begin is None else begin
        end = self.settle_s + self.seconds if end is None else end
        count = int((end - begin) / width_s + 1e-6)
        return [100 * self.series.rate(begin + i * width_s, begin + (i + 1) * width_s) / self.rate
                for i in range(count)]

    def deviation_pct(self):
        return statistics.pstdev(self.windows_pct) if len(self.windows_pct) > 1 else None


class Loads:
    def __init__(self, machine, native_seconds=3.0, settle_s=SETTLE_S):
        self.machine = machine
        self.native_seconds = native_seconds
        self.settle_s = settle_s
        self.program = machine.build.program("allot-load")
        self.calibrated = {}
        self.alone = {}

    def calibrate(self, kernel):
        """Turns of the kernel's loop and its cost; once a run, native, with the GPU idle."""
        if kernel not in self.calibrated:
            job = self.machine.native(f"calibration of {kernel}",
                                      self._command(kernel) + ["--calibrate-only"])
            job.check(60)
            self.calibrated[kernel] = job.json()[-1][1]
        return self.calibrated[kernel]

    def _command(self, kernel):
        return [self.program, "--json", "--kernel-us", str(kernel.cost_us), "--blocks",
                str(kernel.blocks)]

    def command(self, kernel, *more):
        """allot-load's command line with the calibrated kernel."""
        iters = self.calibrate(kernel)["iters"]
        return self._command(kernel) + (["--iters", str(iters)] if iters else []) + list(more)

    def native_rate(self, kernel, mode=()):
        """Kernels a second that one process does alone, without allot."""
        if self.machine.sim and kernel.cost_us >= EXACT_US and not {"--streams", "--sync-every"} & set(mode):
            return 1e6 / kernel.cost_us
        key = (kernel, mode)
        if key not in self.alone:
            load = Load("native", kernel, mode=mode)
            series, _ = self._run_once([load], 0.5 + self.native_seconds + TAIL_S, SETUP_S)[0]
            self.alone[key] = series.rate(0.5, 0.5 + self.native_seconds)
        return self.alone[key]

    def run(self, loads, seconds, *, report_s=REPORT_S, events=(), setup_s=None, settle_s=None):
        """Runs them at the same time; an Outcome each, in their order. events: (seconds from the
        common start, function), called in that order while they run. setup_s: what the slowest
        takes to be ready; a run in which that was too short is thrown away. settle_s: of this run, before its window."""
        settle_s = self.settle_s if settle_s is None else settle_s
        rates = [self.native_rate(load.kernel, load.mode) for load in loads]
        length = settle_s + seconds + TAIL_S
        setup_s = setup_s or SETUP_S + 0.2 * max(0, len(loads) - 3)
        for attempt in range(3):
            try:
                runs = self._run_once(loads, length, setup_s * 2 ** attempt, report_s, events)
                break
            except Late:
                if attempt == 2:
                    raise
        outcomes = []
        for (series, last), rate in zip(runs, rates):
            windows = [100 * series.rate(settle_s + i, settle_s + i + 1) / rate
                       for i in range(int(seconds))]
            share = 100 * series.rate(settle_s, settle_s + seconds) / rate
            outcomes.append(Outcome(share, windows, last, series, rate, settle_s, seconds))
        return outcomes

    def _run_once(self, loads, length, setup_s, report_s=REPORT_S, events=()):
        for load in loads:
            self.calibrate(load.kernel)
        start_at = time.time() + setup_s
        jobs = []
        try:
            for load in loads:
                command = self.command(load.kernel, "--seconds", f"{length:.3f}", "--start-at",
                                       f"{start_at:.3f}", "--report-every", str(report_s),
                                       *load.more, *load.mode)
                jobs.append(self.machine.start(load.name, command, load.options,
                                               environment=load.environment))
            for t, function in events:
                time.sleep(max(0.0, start_at + t - time.time()))
                function()
            for job in jobs:
                job.check(setup_s + length + 30)
            return [self._read(job, start_at) for job in jobs]
        finally:
            for job in jobs:
                job.kill()

    @staticmethod
    def _read(job, start_at):
        reports = [(at, line) for at, line in job.json() if "t_s" in line]
        if not reports:
            raise Failed(f"{job.name}: no reports{job.tail()}")
        processes = {}
        for at, line in reports:
            processes.setdefault(line.get("id"), []).append((at, line))
        # The slowest of its processes counts.
        began = max(min(at - line["t_s"] for at, line in lines) for lines in processes.values())
        if began > start_at + LATE_S:
            raise Late(f"{job.name}: began {began - start_at:.2f} s late")
        ends = [line for _, line in job.json() if "t_s" not in line]
        series = [Series(line for _, line in lines) for lines in processes.values()]
        return series[0] if len(series) == 1 else Together(series), ends[0]


class Late(Failed):
    """A tenant was not ready when all were to begin."""
