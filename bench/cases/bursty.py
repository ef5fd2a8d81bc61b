"""Compares static with elastic allocation on a committed trace of busy and idle phases (as in the abstract of
Lu et al.). Three tenants run different kernels; each is guaranteed a third of the GPU."""

import os

from harness import plot, stats
from harness.build import REPOSITORY
from harness.load import Kernel, Load
from harness.result import Row, at_least, at_most

from .shares import MEMORY

TRACE = os.path.join(REPOSITORY, "bench", "traces", "bursty.trace")
KERNELS = (Kernel(200, 8192), Kernel(1000, 8192), Kernel(5000, 8192))
GUARANTEE = 33

# Ways to give each tenant its third: a hard cap, unused time lent at each turn, or a cap that the daemon adjusts.
STATIC, LENT, ELASTIC = "static", "lent", "elastic"
WAYS = {STATIC: ["--cores", str(GUARANTEE)],
        LENT: ["--cores", str(GUARANTEE), "--cores-limit", "100"],
        ELASTIC: ["--cores", str(GUARANTEE), "--elastic", "on"]}


def length_s(settings):
    return 6.0 if settings.quick else 40.0


def seconds_of(settings):
    return 3 * (length_s(settings) + 5) + 3 * (settings.native_seconds + 4.5)


def measure(bench, way):
    """(sum of all tenants' work in percent, mean busy percent, first_ms of each phase)"""
    loads = [Load(f"burst{i}", kernel, [*MEMORY, *WAYS[way]],
                  ("--trace", TRACE, "--trace-row", str(i))) for i, kernel in enumerate(KERNELS)]
    busy = []

    def sample():
        busy.append(bench.machine.device()["busy_pct"])
    seconds = length_s(bench.settings)
    begin = bench.settings.settle_s + 1     # busy_pct covers the last second
    events = [(begin + i, sample) for i in range(int(seconds))]
    outcomes = bench.loads.run(loads, seconds, events=events)
    firsts = [phase["first_ms"] - kernel.cost_us / 1e3
              for outcome, kernel in zip(outcomes, KERNELS) for phase in outcome.last["phases"]
              if "first_ms" in phase]
    return sum(o.share_pct for o in outcomes), stats.mean(busy[-int(seconds):]), firsts


def add_way(bench, way, found, static):
    work, busy, firsts = found
    bench.result.add(Row(f"bursty, {way}: work done", "%", work))
    bench.result.add(Row(f"bursty, {way}: lease-busy", "%", busy))
    back = Row(f"bursty, {way}: owner's work begins again, 99th percentile of {len(firsts)}", "ms",
               stats.percentile(firsts, 99))
    if static is None:
        bench.result.add(back)
        return
    bench.result.add(at_most(back, bench.bar(25, 100)))
    for what, now, before, bar in (("lease-busy", busy, static[1], bench.bar(37, 10)),
                                   ("work done", work, static[0], bench.bar(26, 10))):
        bench.result.add(at_least(Row(f"bursty, {way} over static: {what}", "%",
                                      100 * (now / before - 1)), bar))


def bursty(bench):
    static = measure(bench, STATIC)
    add_way(bench, STATIC, static, None)
    add_way(bench, LENT, measure(bench, LENT), static)
    refused = bench.machine.refuses(*WAYS[ELASTIC])
    if refused:
        bench.result.skip("bursty, elastic", refused)
    else:
        add_way(bench, ELASTIC, measure(bench, ELASTIC), static)
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "Bursty mix of three: static against lent and elastic", bench.result.rows,
        "%"))
