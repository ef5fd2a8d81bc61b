"""The extra cost of a launch in a tenant with --sharing space, over that in a client of MPS without allot."""

import statistics

from harness import plot
from harness.mps import plain_mps
from harness.result import Row

from .launch import ADDED, add_added, error_key, measure
from .space_ways import SHARING, is_offered

MOST_NS = 50
KEYS = ("launch_ns_median", *(key for _, key in ADDED), *(error_key(key) for _, key in ADDED))


def rounds(settings):
    return max(2, settings.launch_rounds // 2)


def seconds_of(settings):
    return 2 * rounds(settings) * 2.2


def space_launch(bench):
    """Measures as launch_cost does: one process alternately hooked and unhooked, a client of MPS in both cases; and native and
    tenant processes alternately."""
    if not is_offered(bench, "cost of a launch"):
        return
    plain, tenant = ({key: [] for key in KEYS} for _ in range(2))
    with plain_mps(bench.machine):
        for i in range(rounds(bench.settings)):
            for is_plain in ((True, False) if i % 2 == 0 else (False, True)):
                measure(bench, is_plain, plain if is_plain else tenant, SHARING)
    add_added(bench, tenant, "added to MPS's", MOST_NS)
    here, there = (statistics.median(each["launch_ns_median"]) for each in (tenant, plain))
    bench.result.add(Row("launch", "ns", here, mps=there))
    bench.result.add(Row("launch: added, between processes", "ns", here - there))
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "Cost of a launch as a client of MPS", bench.result.rows, "ns"))
