"""What a tenant's launch and allocation cost more than native ones, alone on the GPU and uncapped."""

import statistics

from harness import plot
from harness.result import Row, at_most


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
    keys = ("launch_ns_median", "launch_added_ns", "launch_added_error_ns", "alloc_free_ns_median")
    native = {key: [] for key in keys}
    tenant = {key: [] for key in keys}
    for i in range(bench.settings.launch_rounds):
        for is_native in ((True, False) if i % 2 == 0 else (False, True)):
            measure(bench, is_native, native if is_native else tenant)

    error_ns = statistics.median(tenant["launch_added_error_ns"])
    # The one that is judged: a tenant's process against itself, hooked and unhooked by turns.
    row = Row("launch: added, by turns in one process", "ns",
              statistics.median(tenant["launch_added_ns"]), error=error_ns)
    # The simulated driver sends a message for what costs a real one nothing.
    bench.result.add(row if bench.machine.sim else at_most(row, 30))
    bench.result.add(Row("launch: added, standard error of a process's median", "ns", error_ns))
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
