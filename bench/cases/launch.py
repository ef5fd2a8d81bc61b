"""The extra cost of a tenant's launch and allocation over native ones, alone on the GPU and uncapped."""

import statistics

from harness import plot
from harness.result import Row, at_most


# Streams, and what launch_cost.c calls what is added there: by turns in one process, hooked and unhooked.
ADDED = (("launch", "launch_added_ns"), ("launch into the default stream", "default_added_ns"))


def error_key(key):
    return key.replace("_ns", "_error_ns")


def add_added(bench, tenant, added, most_ns):
    """The rows that are judged, and their errors. tenant: the measures of its processes, by their keys."""
    for what, key in ADDED:
        error_ns = statistics.median(tenant[error_key(key)])
        row = Row(f"{what}: {added}, by turns in one process", "ns", statistics.median(tenant[key]), error=error_ns)
        # The simulated driver sends a message for what costs a real one nothing.
        bench.result.add(row if bench.machine.sim else at_most(row, most_ns))
        bench.result.add(Row(f"{what}: added, standard error of a process's median", "ns", error_ns))


def measure(bench, is_native, mean_of, options=()):
    """options: further ones of a tenant's."""
    command = [bench.machine.build.program("launch-cost"), "--bursts",
               str(bench.settings.launch_bursts)]
    job = bench.machine.start("launch-cost", command, None if is_native else ["--memory", "4GiB", *options])
    job.check(120)
    last = job.json()[-1][1]
    for key, values in mean_of.items():
        values.append(last[key])


def launch_cost(bench):
    """Native and tenant in turn, many short rounds: a process's luck with its addresses and clocks
    moves a launch by more than what is looked for, so medians over processes are compared."""
    keys = ("launch_ns_median", *(key for _, key in ADDED), *(error_key(key) for _, key in ADDED), "alloc_free_ns_median")
    native = {key: [] for key in keys}
    tenant = {key: [] for key in keys}
    for i in range(bench.settings.launch_rounds):
        for is_native in ((True, False) if i % 2 == 0 else (False, True)):
            measure(bench, is_native, native if is_native else tenant)

    add_added(bench, tenant, "added", 30)
    for key, what in (("launch_ns_median", "launch"),
                      ("alloc_free_ns_median", "cuMemAlloc + cuMemFree, 1 MiB")):
        here, there = statistics.median(tenant[key]), statistics.median(native[key])
        bench.result.add(Row(what, "ns", here, native=there))
        bench.result.add(Row(f"{what}: added, between processes", "ns", here - there))
        pairs = [t - n for t, n in zip(tenant[key], native[key])]
        bench.result.add(Row(f"{what}: added, quartiles' distance", "ns", quartiles(pairs)))
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "Cost of calls, alone and uncapped", bench.result.rows, "ns"))


def quartiles(values):
    if len(values) < 4:
        return max(values) - min(values)
    low, _, high = statistics.quantiles(values, n=4)
    return high - low
