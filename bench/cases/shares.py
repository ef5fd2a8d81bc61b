"""Shares of GPU time, measured by the work of kernels of known cost."""

from dataclasses import replace

from harness import mps, plot, rival, stats
from harness.load import Kernel, Load
from harness.result import Row, at_least, within

MEMORY = ["--memory", "4GiB"]
SMALL = Kernel(1000, 132)       # one block per SM
LARGE = Kernel(1000, 8192)      # many waves of short blocks


def capped(name, kernel, pct):
    return Load(name, kernel, [*MEMORY, "--cores", f"{pct:.4g}"])


def fair(name, kernel, pct):
    """Options of a tenant with a guarantee that may also use all time that others leave."""
    return Load(name, kernel, [*MEMORY, "--cores", str(pct), "--cores-limit", "100"])


def add_bars(bench, title, unit="%"):
    bench.result.charts.append(
        lambda stem: plot.bars(stem + ".svg", title, bench.result.rows, unit))


def cap(bench):
    for kernel in (SMALL, LARGE):
        for pct in ((50,) if bench.settings.quick else (20, 50, 80)):
            load = capped("capped", kernel, pct)
            outcome, = bench.loads.run([load], bench.settings.seconds)
            # A part of the SMs limits only kernels that fill the GPU.
            split, = mps.shares(bench, [load], bench.settings.native_seconds) if kernel == LARGE else [None]
            other, = rival.shares(bench, [load], bench.settings.native_seconds)
            bench.result.add(within(
                Row(f"alone, cap {pct} %, {kernel}", "%", outcome.share_pct, pct,
                    native=100.0, mps=split, rival=other), bench.bar(0.5, 1.5)))
    add_bars(bench, "One tenant alone, capped: work done")


def three(bench):
    shares = (45, 30, 15)
    for kernel in (LARGE, SMALL):
        loads = [capped(f"t{pct}", kernel, pct) for pct in shares]
        outcomes = bench.loads.run(loads, bench.settings.seconds)
        native = bench.loads.run([Load(f"n{pct}", kernel) for pct in shares], bench.settings.native_seconds)
        splits = mps.shares(bench, loads, bench.settings.native_seconds)
        others = rival.shares(bench, loads, bench.settings.native_seconds)
        for pct, outcome, unmanaged, split, other in zip(shares, outcomes, native, splits, others):
            bench.result.add(within(Row(f"three, {pct} %, {kernel}", "%", outcome.share_pct, pct, unmanaged.share_pct,
                                        mps=split, rival=other), bench.bar(0.5, 3)))
        points = bench.bar(6, 18)
        near = [stats.within_pct(outcome.windows(0.1), pct, points)
                for pct, outcome in zip(shares, outcomes)]
        bench.result.add(at_least(Row(f"three, {kernel}: 100 ms windows within {points}, the worst",
                                      "%", min(near)), bench.bar(99, 85)))
        for pct, outcome in zip(shares, outcomes):
            if outcome.deviation_pct() is not None:
                bench.result.add(Row(f"three, {pct} %, {kernel}: 1 s windows, std dev", "points",
                                     outcome.deviation_pct()))
        series = {f"{pct} %": outcome.windows_pct for pct, outcome in zip(shares, outcomes)}
        bench.result.charts.append(
            lambda stem, kernel=kernel, series=series: plot.lines(
                f"{stem}-{kernel.blocks}.svg", f"45 / 30 / 15 % together, kernels of {kernel}",
                series, {f"{pct} %": pct for pct in shares}, "% of the GPU, 1 s windows"))
    add_bars(bench, "Three tenants at 45 / 30 / 15 %: work done")


def fifty_beside_four(bench):
    kernel = LARGE
    native = bench.loads.run([Load(f"n{i}", kernel) for i in range(5)],
                             bench.settings.native_seconds)
    loads = [capped("fifty", kernel, 50)] + [capped(f"ten{i}", kernel, 10) for i in range(4)]
    outcomes = bench.loads.run(loads, bench.settings.seconds)
    splits = mps.shares(bench, loads, bench.settings.native_seconds)
    others = rival.shares(bench, loads, bench.settings.native_seconds)
    bench.result.add(at_least(Row(f"50 % beside four at 10 %, {kernel}", "%",
                                  outcomes[0].share_pct, 50, native[0].share_pct,
                                  mps=splits[0], rival=others[0]), 48))
    for i, outcome in enumerate(outcomes[1:], 1):
        bench.result.add(Row(f"beside it, 10 %, number {i}", "%", outcome.share_pct, 10,
                             native[i].share_pct, mps=splits[i], rival=others[i]))
    add_bars(bench, "50 % beside four at 10 %: work done")


def five_equal(bench):
    for kernel in (SMALL, Kernel(50, 132)):
        native = bench.loads.run([Load(f"n{i}", kernel) for i in range(5)],
                                 bench.settings.native_seconds)
        outcomes = bench.loads.run([fair(f"fifth{i}", kernel, 20) for i in range(5)],
                                   bench.settings.seconds)
        shares, unmanaged = [o.share_pct for o in outcomes], [o.share_pct for o in native]
        bench.result.add(at_least(Row(f"five equal, sum, {kernel}", "%", sum(shares), 100,
                                      sum(unmanaged)), bench.bar(98, 85)))
        bench.result.add(at_least(Row(f"five equal, Jain's index, {kernel}", "", stats.jain(shares),
                                      1, stats.jain(unmanaged)), bench.bar(0.999, 0.99)))
        for i, (share, alone) in enumerate(zip(shares, unmanaged)):
            bench.result.add(Row(f"five equal, number {i + 1}, {kernel}", "%", share, 20, alone))
    add_bars(bench, "Five equal tenants: work done, one alone is 100 %")


LOOPS = (1, 8, 64)      # kernels, then a wait for all of them


def closed_loops(bench):
    """Compares each tenant with the same loop in a native process alone."""
    kernel, pcts = LARGE, (45, 30, 15)
    for count in LOOPS:
        mode = ("--sync-every", str(count))
        outcomes = bench.loads.run([replace(capped(f"t{pct}", kernel, pct), mode=mode) for pct in pcts],
                                   bench.settings.seconds)
        for pct, outcome in zip(pcts, outcomes):
            bench.result.add(within(Row(f"loop of {count}, {pct} %", "%", outcome.share_pct, pct), bench.bar(0.5, 10)))
    mode = ("--sync-every", "8")
    native = bench.loads.run([Load(f"n{i}", kernel, mode=mode) for i in range(5)], bench.settings.native_seconds)
    outcomes = bench.loads.run([replace(fair(f"fifth{i}", kernel, 20), mode=mode) for i in range(5)], bench.settings.seconds)
    bench.result.add(at_least(Row("five equal loops of 8, sum", "%", sum(o.share_pct for o in outcomes), 100,
                                  sum(o.share_pct for o in native)), bench.bar(98, 85)))
    add_bars(bench, "Loops of kernels of 1 ms and a wait, together: work done")


def closed_loops_seconds(settings):
    return len(LOOPS) * 4 + 4 * (settings.seconds + 4) + settings.native_seconds + 4


def side_by_side(bench, label, kernels):
    """Tenants with equal guarantees and different kernels. Adds a row for each; returns their shares and the native ones."""
    native = bench.loads.run([Load(f"n{k.cost_us}us", k) for k in kernels],
                             bench.settings.native_seconds)
    equal = 100 / len(kernels)
    outcomes = bench.loads.run([fair(f"k{k.cost_us}us", k, f"{equal:g}") for k in kernels],
                               bench.settings.seconds)
    for kernel, outcome, unmanaged in zip(kernels, outcomes, native):
        bench.result.add(Row(f"{label}, {kernel}", "%", outcome.share_pct, equal,
                             unmanaged.share_pct))
    return [o.share_pct for o in outcomes], [o.share_pct for o in native]


def mixed(bench):
    shares, unmanaged = side_by_side(bench, "mixed", [
        Kernel(us, 132) for us in (20, 200, 1000, 5000, 50000)])
    bench.result.add(Row("mixed, sum", "%", sum(shares), 100, sum(unmanaged)))
    spread = Row("mixed, most less least", "points", max(shares) - min(shares), 0,
                 max(unmanaged) - min(unmanaged))
    bench.result.add(within(spread, 2))
    add_bars(bench, "Kernels of 20 us to 50 ms side by side, equal shares: work done")
