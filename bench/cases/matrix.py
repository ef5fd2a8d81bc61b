"""One tenant alone under a hard cap: how close its share is to the cap, over 10 s and in windows of 1 s and 100 ms."""

from harness import plot, stats
from harness.load import Kernel
from harness.result import Row, at_least, at_most, within

from .shares import LARGE, SMALL, capped

SHORT = Kernel(20, 8192)
LONG = Kernel(5000, 8192)

# The most important caps first: a run that is cut short then has the ends and the middle for every kernel.
CELLS = [(kernel, pct) for pct in (50, 5, 95) for kernel in (LARGE, SHORT, LONG, SMALL)] + \
    [(LARGE, 1)] + [(LARGE, pct) for pct in (10, 90, 30, 70, 20, 80, 40, 60)]
QUICK = [(LARGE, 50), (LARGE, 5), (SHORT, 50), (LONG, 95)]
SETUP_S = 1.3   # a tenant alone is ready sooner than several


def cells(settings):
    return QUICK if settings.quick else CELLS


def seconds_of(settings, kernel_count=None):
    chosen = settings.part_of(cells(settings))
    kernels = kernel_count or len({kernel for kernel, _ in chosen})
    return len(chosen) * cell_s(settings) + kernels * (settings.native_seconds + 4.5)


def cell_s(settings):
    return settings.cell_seconds + settings.settle_s + SETUP_S + 0.8


def measure(bench, kernel, pct):
    """Adds the rows of a cell, and returns its values for the summary."""
    outcome, = bench.loads.run([capped("capped", kernel, pct)], bench.settings.cell_seconds,
                               setup_s=SETUP_S)
    name = f"alone, {pct} %, {kernel}"
    row = Row(name, "%", outcome.share_pct, pct, native=100.0)
    # At 1 % the mean has its own bar, and does not count in the mean of the others.
    bench.result.add(within(row, bench.bar(0.1, 0.8)) if pct == 1 else row)
    deviation = outcome.deviation_pct()
    bench.result.add(Row(f"{name}: 1 s windows, std dev", "points", deviation))
    near = None
    if kernel.cost_us <= 1000:
        near = stats.within_pct(outcome.windows(0.1), pct, bench.bar(5, 15))
        bench.result.add(Row(f"{name}: 100 ms windows within {bench.bar(5, 15)}", "%", near))
    return abs(outcome.share_pct - pct) if pct != 1 else None, deviation, near


def matrix(bench):
    errors, deviations, nears = [], [], []
    for kernel, pct in bench.cells(cells(bench.settings), cell_s(bench.settings)):
        error, deviation, near = measure(bench, kernel, pct)
        errors.append(error)
        deviations.append(deviation)
        nears.append(near)
    errors = [error for error in errors if error is not None]
    nears = [near for near in nears if near is not None]
    if errors:
        bench.result.add(at_most(Row(f"alone, mean error of {len(errors)} cells", "points",
                                     stats.mean(errors)), bench.bar(0.25, 1.5)))
    if deviations:
        bench.result.add(at_most(Row("alone, 1 s windows, the worst std dev", "points",
                                     max(deviations)), bench.bar(1.5, 5)))
    if nears:
        bench.result.add(at_least(Row(
            f"alone, kernels up to 1 ms: 100 ms windows within {bench.bar(5, 15)}, the worst cell",
            "%", min(nears)), bench.bar(99, 90)))
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "One tenant alone: work done", bench.result.rows, "%"))
