"""Several different tenants at the same time: the share that each gets, and the work that is lost in total."""

from harness import plot
from harness.load import Kernel, Load
from harness.result import Row, at_least, at_most, within

from .shares import LARGE, MEMORY, SMALL, add_bars, capped, fair, side_by_side

FIVE_MS = Kernel(5000, 132)
FIFTY_US = Kernel(50, 132)
TWENTY_MS = Kernel(20000, 8192)


def target(bench):
    """Table 9 of Lu et al.: the work that a target tenant loses when others start, which share the other half of the GPU."""
    seconds = bench.settings.cell_seconds
    alone, = bench.loads.run([capped("target", LARGE, 50)], seconds)
    bench.result.add(Row("50 % target alone", "%", alone.share_pct, 50, native=100.0))
    for others in (2,) if bench.settings.quick else (1, 2, 3, 4):
        native = bench.loads.run([Load(f"n{i}", LARGE) for i in range(others + 1)],
                                 bench.settings.native_seconds)
        outcomes = bench.loads.run([capped("target", LARGE, 50)] + [
            capped(f"other{i}", LARGE, 50 / others) for i in range(others)], seconds)
        loss = 100 * (1 - outcomes[0].share_pct / alone.share_pct)
        native_loss = 100 * (1 - native[0].share_pct / 50)
        bench.result.add(at_most(Row(f"50 % target beside {others}: work lost", "%", loss,
                                     native=native_loss), bench.bar(3, 10)))
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "A target of 50 %: work lost as others come", bench.result.rows, "%"))


def pair(bench):
    shares, unmanaged = side_by_side(bench, "pair", (FIVE_MS, FIFTY_US))
    add_difference(bench, "pair", shares, unmanaged)
    bench.result.add(at_least(Row("pair, sum", "%", sum(shares), 100, sum(unmanaged)),
                              bench.bar(97, 85)))
    add_bars(bench, "5 ms kernels beside 50 us ones, equal cores: work done")


def add_difference(bench, label, shares, unmanaged):
    """Adds a row on two tenants that should get the same share."""
    bench.result.add(within(Row(f"{label}, difference", "points", abs(shares[0] - shares[1]), 0,
                                abs(unmanaged[0] - unmanaged[1])), bench.bar(1, 6)))


def odd_work(bench):
    for label, kernel, mode in (("CUDA graphs", LARGE, ("--graph",)),
                                ("cooperative", SMALL, ("--cooperative",)),
                                ("plain", TWENTY_MS, ())):
        load = Load("odd", kernel, [*MEMORY, "--cores", "30"], mode=mode)
        outcome, = bench.loads.run([load], bench.settings.cell_seconds)
        bench.result.add(within(Row(f"30 %, {label}, {kernel}", "%", outcome.share_pct, 30,
                                    native=100.0), bench.bar(0.5, 5)))
    add_bars(bench, "Graphs, cooperative and long kernels, capped at 30 %: work done")


def many_streams(bench):
    """Tenants with one and with four streams. Kernels of several streams overlap at their ends, so a process with four streams
    does more work in the same GPU time. So each is compared with a process alone that has as many streams; the work
    done is reported, too."""
    many = ("--processes", "4", "--streams", "4")
    alone, = bench.loads.run([Load("alone", LARGE, more=("--streams", "4"))],
                             bench.settings.native_seconds)
    native = bench.loads.run([Load("many", LARGE, more=many), Load("one", LARGE)],
                             bench.settings.native_seconds)
    loads = [fair("many", LARGE, 50), fair("one", LARGE, 50)]
    loads[0].more = many
    outcomes = bench.loads.run(loads, bench.settings.cell_seconds)
    full = (alone.share_pct, 100.0)
    bench.result.add(Row("many streams, 4 streams alone: work", "%", alone.share_pct, None, 100.0))
    for label, outcome, unmanaged, most in zip(("4 processes x 4 streams", "1 process, 1 stream"),
                                               outcomes, native, full):
        bench.result.add(Row(f"many streams, {label}: work", "%", outcome.share_pct, 50,
                             unmanaged.share_pct))
        bench.result.add(Row(f"many streams, {label}: of its work alone", "%",
                             100 * outcome.share_pct / most, 50, 100 * unmanaged.share_pct / most))
    add_difference(bench, "many streams, of their work alone",
                   [100 * o.share_pct / most for o, most in zip(outcomes, full)],
                   [100 * o.share_pct / most for o, most in zip(native, full)])
    add_bars(bench, "16 streams of 4 processes beside one, equal cores: work done")


def thousands_of_streams(bench):
    """A capped tenant with more streams than the library can track individually, beside a tenant that uses all other time."""
    many = capped("many", Kernel(200, 264), 10)
    many.more = ("--streams", "4000")
    outcomes = bench.loads.run([many, fair("one", LARGE, 50)], bench.settings.cell_seconds)
    bench.result.add(at_most(Row("4,000 streams, capped at 10 %: work", "%", outcomes[0].share_pct, 10), bench.bar(11, 15)))
    bench.result.add(at_least(Row("beside them, one stream: work", "%", outcomes[1].share_pct, 90), bench.bar(88, 75)))
    add_bars(bench, "4,000 streams beside one, caps of 10 and 100 %: work done")
