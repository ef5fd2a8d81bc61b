"""What a quota that does not bind adds to a model's epoch: the first seed's Table 5, equation 6."""

import statistics

from harness import plot
from harness.pairs import by_turns
from harness.result import Row, at_most
from harness.trainer import Trainer, processors_of_their_own, ready, take_models
from load.trainings.table import BATCHES

QUOTA = ["--memory", "64GiB"]
ROUND_S = 0.05          # an epoch here: the steps of about so long
LEAST_PAIRS = 16
PROCESSORS = 4          # of a training: what launches, with the backward pass, and those of the driver and the library
ERROR_PCT = 0.06        # the bar can be told apart by then
START_S = 30            # of the two processes, together
BUILD_S = 4             # of a model in both, together, and until its steps' time is known


def most_pairs(settings):
    return 3 if settings.quick else 150


def cells_of(settings):
    cells = [(model, batch) for model, batches in BATCHES.items() for batch in batches]
    return cells[:1] if settings.quick else cells


def cell_seconds(settings):
    return BUILD_S + (most_pairs(settings) + 1) * 2 * 1.5 * ROUND_S


def seconds_of(settings):
    return START_S + len(settings.part_of(cells_of(settings))) * cell_seconds(settings)


def measure(bench, native, tenant, model, batch):
    """Adds the rows of a model; what was added to its epoch in percent."""
    size = take_models((native, tenant), 2 * [(model, batch)])["input"]
    alone = native.ask("measure", ROUND_S)
    steps = native.steps_in(ROUND_S)
    most = most_pairs(bench.settings)
    pairs = by_turns(lambda: native.epoch_s(steps), lambda: tenant.epoch_s(steps),
                     min(LEAST_PAIRS, most), most, ERROR_PCT)
    name = f"{model}, {batch} x {size}"
    bench.result.add(Row(f"{name}: epoch of {steps} steps", "ms",
                         1e3 * statistics.median(pairs.tenant),
                         native=1e3 * statistics.median(pairs.native)))
    added = pairs.median_pct()
    bench.result.add(at_most(Row(f"{name}: added", "%", added, error=pairs.error_pct()), bench.bar(0.3, 25)))
    bench.result.add(Row(f"{name}: its standard error, {len(pairs.native)} pairs", "points",
                         pairs.error_pct()))
    # Near 100: the thread that launches sets the pace, not the GPU.
    bench.result.add(Row(f"{name}: of a step, launching", "% of it",
                         100 * alone["launch_ms_median"] / alone["step_ms_median"]))
    return added


def models_overhead(bench):
    same, = processors_of_their_own(PROCESSORS)
    native, tenant = Trainer(bench, "native", more=same), Trainer(bench, "quota", QUOTA, same)
    ready((native, tenant))
    added = [measure(bench, native, tenant, *cell) for cell in
             bench.cells(cells_of(bench.settings), cell_seconds(bench.settings))]
    if added:
        bench.result.add(Row(f"mean of {len(added)}: added", "%", statistics.fmean(added)))
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "A quota that does not bind: added to a model's epoch", bench.result.rows,
        "%"))
