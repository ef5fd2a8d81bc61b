"""From 1 to 64 tenants with equal shares: the sum of their work, its fairness, and the daemon's CPU time."""

import os
import time

from harness import plot, stats
from harness.job import Failed
from harness.load import Load
from harness.result import Row, at_most

from .shares import LARGE, fair

LEAST_SUM_PCT = 95
LEAST_JAIN = 0.99
TICKS_S = os.sysconf("SC_CLK_TCK")
NATIVE_MOST = 16        # native runs need no more contexts than this


def cpu_s(pid):
    """CPU time of a process and its threads, in seconds."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_S


def counts(settings):
    return (1, 2, 4) if settings.quick else (1, 2, 4, 8, 16, 32, 50, 64)


def cell_s(settings, count):
    native = settings.native_seconds + setup_s(count) + 2 if count <= NATIVE_MOST else 0
    return setup_s(count) + settings.cell_seconds / 2 + 3 + native


def setup_s(count):
    return 1.5 + 0.25 * count


def seconds_of(settings):
    return 5 + sum(cell_s(settings, count) for count in settings.part_of(counts(settings)))


def measure(bench, count):
    """Adds the rows of this number of tenants. Returns (tenants, sum, Jain's index)."""
    seconds = max(2.0, bench.settings.cell_seconds / 2)
    native = None
    if count <= NATIVE_MOST:
        native = bench.loads.run([Load(f"n{i}", LARGE) for i in range(count)],
                                 bench.settings.native_seconds, setup_s=setup_s(count))
    times = []
    pid = bench.machine.daemon_pid()

    def note():
        times.append((time.monotonic(), cpu_s(pid)))
    settle_s = bench.settings.settle_s
    loads = [fair(f"s{i}", LARGE, int(10000 / count) / 100) for i in range(count)]
    for load in loads:
        load.options[1] = "1GiB"
    outcomes = bench.loads.run(loads, seconds, setup_s=setup_s(count),
                               events=[(settle_s, note), (settle_s + seconds, note)])
    (begin, used), (end, used_then) = times[-2:]
    shares = [outcome.share_pct for outcome in outcomes]
    total, index = sum(shares), stats.jain(shares)
    bench.result.add(Row(f"scale, {count} tenants: sum", "%", total, 100,
                         sum(o.share_pct for o in native) if native else None))
    bench.result.add(Row(f"scale, {count} tenants: Jain's index", "", index, 1,
                         stats.jain([o.share_pct for o in native]) if native else None))
    cpu = Row(f"scale, {count} tenants: daemon's CPU", "%", 100 * (used_then - used) / (end - begin))
    bench.result.add(at_most(cpu, bench.bar(2, 50)) if count == 50 else cpu)
    return count, total, index


def measure_idle(bench):
    pid = bench.machine.daemon_pid()
    begin, used = time.monotonic(), cpu_s(pid)
    time.sleep(2 if bench.settings.quick else 10)   # a tick is 10 ms: 0.1 % of 10 s
    idle = 100 * (cpu_s(pid) - used) / (time.monotonic() - begin)
    bench.result.add(at_most(Row("scale, daemon's CPU with 1 idle tenant", "%", idle),
                             bench.bar(0.1, 5)))


def scale(bench):
    measure_idle(bench)
    curve = []
    for count in bench.cells(counts(bench.settings), lambda n: cell_s(bench.settings, n)):
        try:
            curve.append(measure(bench, count))
        except Failed as error:
            bench.result.skip(f"scale, {count} tenants", str(error))
            break
    best = stats.recommended(curve, LEAST_SUM_PCT, LEAST_JAIN)
    if best:
        bench.result.add(Row(f"scale, recommended maximum (sum at least {LEAST_SUM_PCT} %, Jain's "
                             f"index {LEAST_JAIN})", "tenants", best))
    if len(curve) > 1:
        bench.result.charts.append(lambda stem: plot.lines(
            stem + ".svg", "Equal tenants: sum of work, one alone is 100 %",
            {"sum": [total for _, total, _ in curve]}, {}, "%",
            "tenants: " + ", ".join(str(count) for count, _, _ in curve)))
