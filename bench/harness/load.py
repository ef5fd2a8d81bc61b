"""Runs allot-load, with kernels of known cost, in several tenants at the same time, and measures all in one common window.

A tenant's share is the number of kernels that it finished in the window, divided by the number that a single native
process finishes in the same time, alone on the GPU (measured in the same run)."""

import bisect
import statistics
import time
from dataclasses import dataclass

from .job import Failed
from .mps import PIPE

SETUP_S = 2.0       # from a tenant's start until it is ready (daemon asked, context and module made)
SETTLE_S = 1.0      # estimates and credits settle before the window begins
TAIL_S = 0.3        # all tenants still run when the window ends
LATE_S = 0.25
REPORT_S = 0.1
# The most that loads which share one GPU by turns can do together, in percent of one of them alone. (On a simulated GPU, which
# takes time from the programs, counting is less exact.)
MOST_PCT, SIM_MOST_PCT = 105, 130
OVERLAPS = {"--streams", "--sync-every"}    # options of allot-load with which one load alone leaves a part of the GPU idle
EXACT_US = 500      # from this cost on, a simulated kernel takes exactly its nominal time, including the launch


@dataclass(frozen=True)
class Kernel:
    cost_us: int
    blocks: int

    def __str__(self):
        cost = f"{self.cost_us} us" if self.cost_us < 1000 else f"{self.cost_us / 1000:g} ms"
        return f"{self.blocks} blocks, {cost}"


@dataclass
class Load:
    """One tenant of a run. options: options of allot run; None: a native process."""
    name: str
    kernel: Kernel
    options: list = None
    more: tuple = ()        # further options of allot-load
    mode: tuple = ()        # options of allot-load that change a kernel's cost; the native run gets them, too
    environment: dict = None    # for a native process: variables added to the common environment


class Series:
    """The number of finished kernels as a function of time, computed from a run's reports."""

    def __init__(self, reports):
        self.at = [0.0]
        self.done = [0]
        for report in reports:
            self.at.append(report["t_s"])
            self.done.append(self.done[-1] + report["kernels"])

    def done_at(self, t):
        """Kernels finished until t, interpolated between two reports."""
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
    """The sum of the series of a tenant's processes."""

    def __init__(self, series):
        self.series = series

    def done_at(self, t):
        return sum(one.done_at(t) for one in self.series)

    def rate(self, begin, end):
        return sum(one.rate(begin, end) for one in self.series)


@dataclass
class Outcome:
    """The results of one tenant. Shares are in percent of a native process alone on the GPU."""
    share_pct: float
    windows_pct: list       # share of each whole second of the window
    last: dict              # allot-load's last line, of the tenant's first process
    series: Series = None
    rate: float = None      # kernels a second of a native process alone
    settle_s: float = 0.0   # begin of the window, from the common start; below it its length
    seconds: float = 0.0

    def windows(self, width_s, begin=None, end=None):
        """Shares in consecutive windows of width_s, within the common window or from `begin` to `end`."""
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
        """Loop count and cost of a kernel, measured once a run, natively, on the idle GPU."""
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
        """Kernels a second of one native process alone on the GPU."""
        if self.machine.sim and kernel.cost_us >= EXACT_US and not {"--streams", "--sync-every"} & set(mode):
            return 1e6 / kernel.cost_us
        key = (kernel, mode)
        if key not in self.alone:
            load = Load("native", kernel, mode=mode)
            series, _ = self._run_once([load], 0.5 + self.native_seconds + TAIL_S, SETUP_S)[0]
            self.alone[key] = series.rate(0.5, 0.5 + self.native_seconds)
        return self.alone[key]

    def run(self, loads, seconds, *, report_s=REPORT_S, events=(), setup_s=None, settle_s=None):
        """Runs the loads at the same time and returns an Outcome for each, in their order. events: [(seconds from the
        common start, function)], functions to call during the run. setup_s: time until the slowest load is ready; if a
        load needs longer, the run is repeated. settle_s: time between the common start and the window."""
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
        self.check_sum(loads, outcomes)
        return outcomes

    def check_sum(self, loads, outcomes):
        """Raises Failed if loads that share by turns did more than one GPU can do: then they ran on several GPUs."""
        most = SIM_MOST_PCT if self.machine.sim else MOST_PCT
        total = sum(outcome.share_pct for load, outcome in zip(loads, outcomes) if self._takes_turns(load))
        if total > most:
            raise Failed(f"all together did {total:.0f} % of the work of one alone, but one GPU shared by turns can do at most "
                         f"{most} %: the programs did not all run on GPU {self.machine.gpu_index}")

    def _takes_turns(self, load):
        """Whether this load keeps the GPU busy when it is alone, and has the GPU to itself while it runs."""
        if OVERLAPS & {*load.more, *load.mode} or self.machine.sim and load.kernel.cost_us < EXACT_US:
            return False
        if load.options is None:
            return PIPE not in self.machine.native_environment
        return "space" not in (load.options if "--sharing" in load.options else [self.machine.sharing])

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
        # The tenant's slowest process counts.
        began = max(min(at - line["t_s"] for at, line in lines) for lines in processes.values())
        if began > start_at + LATE_S:
            raise Late(f"{job.name}: began {began - start_at:.2f} s late")
        ends = [line for _, line in job.json() if "t_s" not in line]
        series = [Series(line for _, line in lines) for lines in processes.values()]
        return series[0] if len(series) == 1 else Together(series), ends[0]


class Late(Failed):
    """A tenant was not ready at the common start."""
