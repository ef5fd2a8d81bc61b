"""The cost of `allot trace` to the recorded tenant, measured alternately with and without recording: the time of a launch that
nothing else delays, and the number of finished kernels."""

import math
import signal
import statistics
import time

from harness import plot, stats
from harness.job import Failed
from harness.load import Kernel
from harness.pairs import by_turns
from harness.result import Row, at_most

NAME = "recorded"
MEMORY = ["--memory", "4GiB"]
KERNELS = (Kernel(20, 132), Kernel(200, 8192))
WINDOW_S = 1.0
REPORT_S = 0.05
BEGINS_S = 0.3          # until a process records; its helper thread polls 20 times a second
LEAST_PAIRS, MOST_PAIRS = 5, 15
ERROR_PCT = 0.3         # precise enough to judge the bar
BAR_PCT = 2


def most_pairs(settings):
    return 3 if settings.quick else MOST_PAIRS


def seconds_of(settings):
    pair_s = 2 * (WINDOW_S + BEGINS_S + 0.2)
    return settings.launch_rounds * 2 * 1.8 + len(KERNELS) * (5 + (most_pairs(settings) + 1) * pair_s)


class Recording:
    """Runs `allot trace` within the `with`. It writes to /dev/null, so that no disk is measured. Afterwards `lost` has the
    number of events that were not written."""

    def __init__(self, bench):
        self.bench = bench
        self.lost = 0

    def __enter__(self):
        self.job = self.bench.machine.trace(NAME, "/dev/null")
        time.sleep(BEGINS_S)
        return self

    def __exit__(self, kind, *_):
        if self.job.process.poll() is None:
            self.job.process.send_signal(signal.SIGINT)
        if kind is None:
            self.job.check(20)
            self.lost = sum(int(line.split("warning: ")[1].split()[0]) for line in self.job.errors
                            if "events are not in it" in line)


# ---- launches

def launch_ns(bench, is_recorded):
    """(time of a launch, part of it that allot added), measured in a new process."""
    command = [bench.machine.build.program("launch-cost"), "--bursts",
               str(bench.settings.launch_bursts)]
    job = bench.machine.tenant(NAME, ["/bin/sh", "-c", 'echo here; read -r go; exec "$@"', "sh",
                                      *command], MEMORY, stdin=True)
    if job.wait_line(0, 60) is None:
        raise Failed(f"launch-cost: ended{job.tail()}")
    if is_recorded:
        with Recording(bench):
            job.say("go")
            job.check(120)
    else:
        job.say("go")
        job.check(120)
    last = job.json()[-1][1]
    bench.machine.settle()
    return last["launch_ns_median"], last["launch_added_ns"]


def launches(bench):
    recorded, plain = [], []
    for i in range(bench.settings.launch_rounds):
        for is_recorded in ((True, False) if i % 2 else (False, True)):
            (recorded if is_recorded else plain).append(launch_ns(bench, is_recorded))
    alone_ns = statistics.median(one[0] - one[1] for one in plain)
    added_ns = statistics.median(one[1] for one in recorded) - statistics.median(
        one[1] for one in plain)
    bench.result.add(Row("launch, empty: added by recording", "ns", added_ns, native=alone_ns))
    error_ns = math.hypot(*(stats.error_of_median([one[1] for one in of]) for of in (recorded, plain)))
    row = Row("launch, empty: added by recording", "%", 100 * added_ns / alone_ns, error=100 * error_ns / alone_ns)
    bench.result.add(at_most(row, bench.bar(BAR_PCT, 25)))


# ---- kernels done

class Running:
    """A load that keeps running, and its work in a window of its reports."""

    def __init__(self, bench, kernel, seconds):
        turns = bench.loads.calibrate(kernel)["iters"]
        self.job = bench.machine.tenant(
            NAME, [bench.machine.build.program("allot-load"), "--json", "--kernel-us",
                   str(kernel.cost_us), "--blocks", str(kernel.blocks), "--iters", str(turns),
                   "--seconds", f"{seconds:g}", "--report-every", str(REPORT_S)], MEMORY)
        if self.job.wait_line(3, 60) is None:
            raise Failed(f"allot-load: ended{self.job.tail()}")

    def kernel_us(self):
        """Microseconds a kernel, over the next window."""
        begin = self.job.json()[-1][1]
        time.sleep(WINDOW_S)
        reports = [report for _, report in self.job.json()
                   if "kernels" in report and "t_s" in report and report["t_s"] > begin["t_s"]]
        if not reports:
            raise Failed(f"allot-load: has stopped reporting{self.job.tail()}")
        return 1e6 * (reports[-1]["t_s"] - begin["t_s"]) / sum(r["kernels"] for r in reports)


def kernels(bench, kernel):
    most = most_pairs(bench.settings)
    running = Running(bench, kernel, 10 + 2 * (most + 2) * (WINDOW_S + BEGINS_S + 2))
    lost = []

    def recorded():
        with Recording(bench) as recording:
            took = running.kernel_us()
        lost.append(recording.lost)
        return took

    pairs = by_turns(running.kernel_us, recorded, min(LEAST_PAIRS, most), most, ERROR_PCT)
    running.job.kill()
    bench.machine.settle()
    bench.result.add(Row(f"{kernel}: a kernel", "us", statistics.median(pairs.tenant),
                         native=statistics.median(pairs.native)))
    bench.result.add(at_most(Row(f"{kernel}: added by recording", "%", pairs.median_pct(), error=pairs.error_pct()),
                             bench.bar(BAR_PCT, 25)))
    bench.result.add(Row(f"{kernel}: its standard error, {len(pairs.native)} pairs", "points",
                         pairs.error_pct()))
    bench.result.add(Row(f"{kernel}: events that were lost", "", sum(lost)))


def trace_overhead(bench):
    launches(bench)
    for kernel in KERNELS:
        kernels(bench, kernel)
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "allot trace: what it adds", bench.result.rows, "%"))
