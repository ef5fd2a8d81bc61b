"""The time that a quota which does not bind adds to a model's epoch (Lu et al., Table 5, equation 6). It is measured in two
ways: a tenant against itself while liballot.so is bypassed, and tenants against native processes. Processes of the same program
differ from each other for as long as they live, by some percent if the launching thread is the bottleneck. So several of each
are compared, and the spread is that over the processes. Against itself, a tenant is measured in short turns, because only more
pairs, not longer turns, reduce the differences between pairs."""

import itertools
import statistics
import time

from harness import plot
from harness.bypass import standing_aside
from harness.pairs import by_turns, until_known
from harness.result import Row, at_most
from harness.trainer import Trainer, processors_of_their_own, ready, take_models
from load.trainings.table import BATCHES

from .under_policies import by_policies, count

QUOTA = ["--memory", "24GiB"]
ROUND_S = 0.05          # about the length of an epoch against a native process
TURN_S = 0.02           # the same for a turn against itself; at least one step
LEAST_PAIRS = 16
PROCESSORS = 4          # of a training: for two launching threads (forward, backward), the driver and the library
ERROR_PCT = 0.06        # precise enough to judge the bar
START_S = 50            # for the starts of all processes
BUILD_S = 4             # for making a model in two processes, and until the time of its steps is known


def most_pairs(settings):
    """(pairs against itself, pairs of a tenant and a native process)."""
    return (3, 1) if settings.quick else (1000, 12)


def processes(settings):
    """Of each kind."""
    return 2 if settings.quick else 4


def cells_of(settings):
    cells = [(model, batch) for model, batches in BATCHES.items() for batch in batches]
    return cells[:1] if settings.quick else cells


def cell_seconds(settings):
    """About how long a cell takes, if launching is the bottleneck and a step takes 10 ms."""
    itself, native = most_pairs(settings)
    return processes(settings) * (BUILD_S + 2 * native * 1.5 * ROUND_S) + 2 * itself * 1.5 * TURN_S


def seconds_of(settings):
    return count(settings) * (START_S + len(settings.part_of(cells_of(settings))) * cell_seconds(settings))


def beside_native(native, tenant, most):
    """Equation 6, of two processes."""
    steps = native.steps_in(ROUND_S)
    pairs = by_turns(lambda: native.epoch_s(steps), lambda: tenant.epoch_s(steps), min(LEAST_PAIRS, most), most, ERROR_PCT)
    return pairs, steps


def is_bound_by_the_gpu(model, batch):
    """Whether equation 6 is judged: not with the smaller batch, where the launching thread may be the bottleneck."""
    return batch == BATCHES[model][0]


def beside_itself(bench, tenant, most):
    """(pairs, steps of a turn, percent of the time for which threads were held before a launch)."""
    def held_s():
        return bench.machine.tenant_device(tenant.name)["waited_s"]

    steps = tenant.steps_in(TURN_S, least=1)
    held, began = held_s(), time.monotonic()
    pairs = until_known(lambda number: tenant.turns(number, steps), min(LEAST_PAIRS, most), most, ERROR_PCT)
    return pairs, steps, 100 * (held_s() - held) / (time.monotonic() - began)


class Cell:
    """A model and a batch, and what was measured of it."""

    def __init__(self, model, batch):
        self.model, self.batch = model, batch
        self.runs, self.native_ms, self.tenant_ms = [], [], []
        self.size = self.launching_pct = self.itself = None

    def measure(self, bench, native, tenant, is_last, can_bypass):
        """One pair of processes. Only the last one is compared with itself."""
        most, most_native = most_pairs(bench.settings)
        self.size = take_models((native, tenant), 2 * [(self.model, self.batch)])["input"]
        pairs, steps = beside_native(native, tenant, most_native)
        self.runs.append(pairs.median_pct())
        self.native_ms += [1e3 * time_s / steps for time_s in pairs.native]
        self.tenant_ms += [1e3 * time_s / steps for time_s in pairs.tenant]
        if is_last:
            alone = native.ask("measure", ROUND_S)
            self.launching_pct = 100 * alone["launch_ms_median"] / alone["step_ms_median"]
            self.itself = beside_itself(bench, tenant, most) if can_bypass else None
        native.ask("free")
        tenant.ask("free")

    def report(self, bench, prefix):
        """Adds the rows. Returns the time added to the model's epoch, in percent."""
        name = f"{prefix}{self.model}, {self.batch} x {self.size}"
        bench.result.add(Row(f"{name}: step", "ms", statistics.median(self.tenant_ms), native=statistics.median(self.native_ms)))
        row = Row(f"{name}: added, beside native processes", "%", statistics.median(self.runs), runs=self.runs)
        if is_bound_by_the_gpu(self.model, self.batch):
            at_most(row, bench.bar(1, 25))
        bench.result.add(row)
        added = row.got
        if self.itself:
            pairs, steps, held_pct = self.itself
            added, error = pairs.median_pct(), pairs.error_pct()
            bench.result.add(Row(f"{name}: held at the gate", "% of the time", held_pct))
            bench.result.add(at_most(Row(f"{name}: added", "%", added, error=error), bench.bar(0.3, 25)))
            bench.result.add(Row(f"{name}: its standard error, {len(pairs.native)} pairs of {steps} steps", "points", error))
        # Near 100, the launching thread is the bottleneck, not the GPU.
        bench.result.add(Row(f"{name}: of a step, launching", "% of it", self.launching_pct))
        return added


def models_overhead(bench):
    same, = processors_of_their_own(PROCESSORS)
    numbers = range(processes(bench.settings))

    def under(prefix):
        order = itertools.count(1)
        cells = [Cell(*cell) for cell in
                 bench.cells(cells_of(bench.settings), lambda _: START_S + next(order) * cell_seconds(bench.settings))]
        for number in numbers if cells else ():
            # No other tenant has a process: beside one, less of a tenant's work would be in flight.
            with standing_aside(bench.machine) as can_bypass:
                native, tenant = Trainer(bench, f"native{number}", more=same), Trainer(bench, f"quota{number}", QUOTA, same)
                ready((native, tenant))
                for cell in cells:
                    cell.measure(bench, native, tenant, number == numbers[-1], can_bypass)
                native.end()
                tenant.end()
                bench.machine.settle()
        added = [cell.report(bench, prefix) for cell in cells]
        if added:
            bench.result.add(Row(f"{prefix}mean of {len(added)}: added", "%", statistics.fmean(added)))

    by_policies(bench, under)
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "A quota that does not bind: added to a model's epoch", bench.result.rows,
        "%"))
