"""Inference with priority beside a training, at the same time on one GPU."""

from harness import mps, plot
from harness.load import Kernel
from harness.result import Row, at_least, at_most

from .response import BURST, PERIOD_MS, REQUEST, latency
from .space_ways import MPS, NATIVE, NATIVE_S, SPACE, Member, is_offered, measure, run_seconds

TRAINER = Kernel(1000, 8192)
TIMES_ALONE = 1.5
TRAINER_KEEPS_PCT = 80


def seconds_of(settings):
    return 2 * NATIVE_S + 2 * run_seconds(settings, settings.cell_seconds) + \
        2 * run_seconds(settings, 0.6 * settings.cell_seconds)


def space_priority(bench):
    """MPS alone has priorities, too, but never lends parts of the GPU, so there both programs get all of it."""
    if not is_offered(bench, "inference with priority"):
        return
    seconds = bench.settings.cell_seconds
    more = ("--burst", str(BURST), "--period-ms", str(PERIOD_MS), "--warmup", str(bench.settings.settle_s))
    urgent = Member("inference", REQUEST, 20, 100, 100, more=more, options=("--priority", "50"),
                    environment=mps.priority(0))
    trainer = Member("trainer", TRAINER, 80, 100, 100, environment=mps.priority(1))
    alone, = measure(bench, SPACE, [urgent], seconds)
    native = measure(bench, NATIVE, [urgent, trainer], 0.6 * seconds)
    plain = measure(bench, MPS, [urgent, trainer], 0.6 * seconds)
    got = measure(bench, SPACE, [urgent, trainer], seconds)
    bench.result.add(Row("inference alone: p99", "ms", latency(alone)))
    for key, what in (("p50", "median"), ("p99", "p99")):
        row = Row(f"inference beside a trainer: {what}", "ms", latency(got[0], key), latency(alone, key),
                  latency(native[0], key), mps=latency(plain[0], key))
        bench.result.add(row)
    row = Row("inference beside a trainer: p99 over alone", "x", latency(got[0]) / latency(alone),
              native=latency(native[0]) / latency(alone), mps=latency(plain[0]) / latency(alone))
    bench.result.add(at_most(row, bench.bar(TIMES_ALONE, 6)))
    bench.result.add(at_least(Row("trainer beside it", "%", got[1].share_pct, 90, native[1].share_pct,
                                  mps=plain[1].share_pct), bench.bar(TRAINER_KEEPS_PCT, 60)))
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "5 ms of inference each 50 ms beside a trainer, in space", bench.result.rows, "ms"))
