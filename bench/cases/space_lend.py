"""The share that a tenant with a guarantee of 30 % gets while the GPU is idle, and how fast a tenant with 70 % has its
guarantee again when it wakes. MPS alone fixes both parts when a client starts: it never lends, so a guarantee is available
at once."""

import tempfile

from harness import plot, stats
from harness.result import Row, at_least, at_most

from .response import FINE
from .shares import LARGE, add_bars
from .space_ways import MPS, NATIVE_S, SPACE, Member, is_offered, measure, run_seconds, window_s

LENDS_PCT, WAKES_PCT = 30, 70
REPORT_S = 0.002
STEP_S = 0.001
WINDOW_S = 0.01         # window in which the work after a wake is measured
ENOUGH = 0.95           # of the guarantee, since a window counts only whole kernels
BUSY_S, PERIOD_S = 0.18, 0.3537
NEW = 6                 # first wakes, while kernels are still being timed: reported, not judged


def lend_seconds(settings):
    return NATIVE_S + 2 * run_seconds(settings, window_s(settings))


def space_lend(bench):
    if not is_offered(bench, "lending"):
        return
    member = Member("lent", LARGE, LENDS_PCT, 100)
    got = {way: measure(bench, way, [member], window_s(bench.settings))[0].share_pct for way in (MPS, SPACE)}
    row = Row(f"cores {LENDS_PCT}, limit 100, alone: of no quota", "%", got[SPACE], native=100.0, mps=got[MPS])
    bench.result.add(at_least(row, bench.bar(99, 85)))
    add_bars(bench, "30 % with all that is idle, alone: work done")


def wakes(settings):
    return 8 if settings.quick else 40


def wake_seconds(settings):
    return 2 * NATIVE_S + 2 * run_seconds(settings, PERIOD_S * (NEW + wakes(settings)))


def until_guarantee_ms(series, rate, begin_s):
    """The time from a wake until the work of the last WINDOW_S reaches the guarantee. A wake that never reaches it counts with
    its whole length."""
    least = ENOUGH * WAKES_PCT / 100
    t = begin_s + WINDOW_S
    while t < begin_s + BUSY_S:
        if series.rate(t - WINDOW_S, t) >= least * rate:
            break
        t += STEP_S
    return 1e3 * (t - begin_s)


def measure_wakes(bench, way, path, begins):
    """(ms of each wake, share of the smaller tenant while the other one is idle, share of the larger one later in its phase)"""
    members = [Member("lender", LARGE, LENDS_PCT, 100),
               Member("wakes", FINE, WAKES_PCT, 100, more=("--trace", path))]
    lender, woken = measure(bench, way, members, PERIOD_S * len(begins), report_s=REPORT_S)
    took = [until_guarantee_ms(woken.series, woken.rate, begin) for begin in begins]
    idle = [lender.series.rate(begin - (PERIOD_S - BUSY_S) / 2, begin) for begin in begins]
    held = [woken.series.rate(begin + BUSY_S / 2, begin + BUSY_S) for begin in begins]
    return took, 100 * stats.mean(idle) / lender.rate, 100 * stats.mean(held) / woken.rate


def space_wake(bench):
    if not is_offered(bench, "a neighbour that wakes"):
        return
    first = bench.settings.settle_s + (PERIOD_S - BUSY_S)
    begins = [first + i * PERIOD_S for i in range(NEW + wakes(bench.settings))]
    found = {}
    with tempfile.NamedTemporaryFile("w", suffix=".trace", encoding="utf-8") as trace:
        trace.writelines(f"0 {begin:.4f} {begin + BUSY_S:.4f}\n" for begin in begins)
        trace.flush()
        for way in (MPS, SPACE):
            found[way] = measure_wakes(bench, way, trace.name, begins)
    (took, lent, held), (mps_took, mps_lent, mps_held) = found[SPACE], found[MPS]
    what = f"{WAKES_PCT} % wakes beside {LENDS_PCT} %: at its guarantee"
    bench.result.add(Row(f"{what}, longest of its first {NEW} wakes", "ms", max(took[:NEW]), mps=max(mps_took[:NEW])))
    took, mps_took = took[NEW:], mps_took[NEW:]
    bench.result.add(Row(f"{what}, median", "ms", stats.percentile(took, 50), mps=stats.percentile(mps_took, 50)))
    bench.result.add(at_most(Row(f"{what}, 99th pct of {len(took)}", "ms", stats.percentile(took, 99),
                                 mps=stats.percentile(mps_took, 99)), bench.bar(50, 250)))
    bench.result.add(Row("work of the woken one, later in its phase", "%", held, WAKES_PCT, mps=mps_held))
    bench.result.add(Row("work of the other one while it sleeps", "%", lent, mps=mps_lent))
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "A neighbour of 70 % wakes: until it has its guarantee", bench.result.rows, "ms"))
