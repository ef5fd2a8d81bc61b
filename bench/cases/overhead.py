"""The time that a quota which does not bind adds to a model's epoch (Lu et al., Table 5, equation 6). It is measured in two
ways: a tenant against itself while liballot.so is bypassed, and a tenant against a native process. If the launching thread is
the bottleneck, native processes differ from each other by some percent. Against itself, a tenant is measured in short turns,
because only more pairs, not longer turns, reduce the differences between pairs."""

import statistics
import time

from harness import plot
from harness.bypass import standing_aside
from harness.pairs import by_turns, until_known
from harness.result import Row, at_most
from harness.trainer import Trainer, processors_of_their_own, ready, take_models
from load.trainings.table import BATCHES

QUOTA = ["--memory", "64GiB"]
ROUND_S = 0.05          # about the length of an epoch against a native process
TURN_S = 0.02           # the same for a turn against itself; at least one step
LEAST_PAIRS = 16
PROCESSORS = 4          # of a training: for two launching threads (forward, backward), the driver and the library
ERROR_PCT = 0.06        # precise enough to judge the bar
START_S = 30            # for the start of the two processes
BUILD_S = 4             # for making a model in both, and until the time of its steps is known


def most_pairs(settings):
    """(pairs against itself, pairs against a native process)."""
    return (3, 1) if settings.quick else (1000, 50)


def cells_of(settings):
    cells = [(model, batch) for model, batches in BATCHES.items() for batch in batches]
    return cells[:1] if settings.quick else cells


def cell_seconds(settings):
    """About how long a cell takes, if launching is the bottleneck and a step takes 10 ms."""
    itself, native = most_pairs(settings)
    return BUILD_S + 2 * (itself * 1.5 * TURN_S + native * 1.5 * ROUND_S)


def seconds_of(settings):
    return START_S + len(settings.part_of(cells_of(settings))) * cell_seconds(settings)


def beside_native(native, tenant, most):
    steps = native.steps_in(ROUND_S)
    pairs = by_turns(lambda: native.epoch_s(steps), lambda: tenant.epoch_s(steps), min(LEAST_PAIRS, most), most, ERROR_PCT)
    return pairs, steps


def beside_itself(bench, tenant, most):
    """(pairs, steps of a turn, percent of the time for which threads were held before a launch)."""
    def held_s():
        return bench.machine.tenant_device(tenant.name)["waited_s"]

    steps = tenant.steps_in(TURN_S, least=1)
    held, began = held_s(), time.monotonic()
    pairs = until_known(lambda count: tenant.turns(count, steps), min(LEAST_PAIRS, most), most, ERROR_PCT)
    return pairs, steps, 100 * (held_s() - held) / (time.monotonic() - began)


def measure(bench, native, tenant, can_bypass, model, batch):
    """Adds the rows of a model. Returns the time added to its epoch, in percent."""
    size = take_models((native, tenant), 2 * [(model, batch)])["input"]
    alone = native.ask("measure", ROUND_S)
    most, most_native = most_pairs(bench.settings)
    name = f"{model}, {batch} x {size}"
    beside, epoch = beside_native(native, tenant, most_native if can_bypass else most)
    judged, steps = beside, epoch
    bench.result.add(Row(f"{name}: epoch of {epoch} steps", "ms", 1e3 * statistics.median(beside.tenant),
                         native=1e3 * statistics.median(beside.native)))
    if can_bypass:
        judged, steps, held_pct = beside_itself(bench, tenant, most)
        bench.result.add(Row(f"{name}: added, beside a native process", "%", beside.median_pct(),
                             error=beside.error_pct()))
        bench.result.add(Row(f"{name}: held at the gate", "% of the time", held_pct))
    added, error = judged.median_pct(), judged.error_pct()
    bench.result.add(at_most(Row(f"{name}: added", "%", added, error=error), bench.bar(0.3, 25)))
    bench.result.add(Row(f"{name}: its standard error, {len(judged.native)} pairs of {steps} steps", "points", error))
    # Near 100, the launching thread is the bottleneck, not the GPU.
    bench.result.add(Row(f"{name}: of a step, launching", "% of it",
                         100 * alone["launch_ms_median"] / alone["step_ms_median"]))
    return added


def models_overhead(bench):
    same, = processors_of_their_own(PROCESSORS)
    native = Trainer(bench, "native", more=same)
    with standing_aside(bench.machine) as can_bypass:
        tenant = Trainer(bench, "quota", QUOTA, same)
        ready((native, tenant))
        added = [measure(bench, native, tenant, can_bypass, *cell) for cell in
                 bench.cells(cells_of(bench.settings), cell_seconds(bench.settings))]
    if added:
        bench.result.add(Row(f"mean of {len(added)}: added", "%", statistics.fmean(added)))
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "A quota that does not bind: added to a model's epoch", bench.result.rows,
        "%"))
