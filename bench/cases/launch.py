"""The extra cost of a launch and an allocation in a tenant over native ones. The tenant is alone on the GPU and uncapped."""

import statistics

from harness import plot
from harness.result import Row, at_most


# (kind of launch, launch_cost.c's name for its added cost). It measures this in one process, alternately hooked and unhooked.
ADDED = (("launch", "launch_added_ns"), ("launch into the default stream", "default_added_ns"))


def error_key(key):
    return key.replace("_ns", "_error_ns")


def add_added(bench, tenant, added, most_ns):
    """Adds the judged rows, with their standard errors. tenant: {name: values measured in the tenant's processes}."""
    for what, key in ADDED:
        error_ns = statistics.median(tenant[error_key(key)])
        row = Row(f"{what}: {added}, by turns in one process", "ns", statistics.median(tenant[key]), error=error_ns)
        # The simulated driver sends a message where a real driver does almost nothing.
        bench.result.add(row if bench.machine.sim else at_most(row, most_ns))
        bench.result.add(Row(f"{what}: added, standard error of a process's median", "ns", error_ns))


def measure(bench, is_native, mean_of, options=()):
    """options: further options of the tenant."""
    command = [bench.machine.build.program("launch-cost"), "--bursts",
               str(bench.settings.launch_bursts)]
    job = bench.machine.start("launch-cost", command, None if is_native else ["--memory", "4GiB", *options])
    job.check(120)
    last = job.json()[-1][1]
    for key, values in mean_of.items():
        values.append(last[key])


def launch_cost(bench):
    """Alternates native and tenant processes in many short rounds and compares medians over processes: a launch differs
    more between processes, by their addresses and clocks, than by the cost that is measured."""
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
