"""PyTorch trainings (bench/load/torch_load.py), native and in tenants."""

import statistics
import sys
import threading
import time

from harness import plot, rival
from harness.bypass import standing_aside
from harness.job import Failed
from harness.result import Row, at_most, within, within_pct
from harness.trainer import READY_S, Trainer, ready, record_together, take_models

from .under_policies import by_policies, count

MIB = 1 << 20


def start(bench, name, options, more=(), environment=None):
    """Starts a training of ResNet18. environment: of a native one."""
    command = [sys.executable, bench.settings.torch_load, "--json", *bench.settings.torch_options,
               *more]
    return bench.machine.start(name, command, options, environment=environment)


def train(bench, name, options, seconds, environment=None):
    """Runs one training alone. Returns its last line."""
    job = start(bench, name, options, ["--seconds", str(seconds)], environment)
    job.check(READY_S + seconds)
    return job.json()[-1][1]


def native_step_ms(bench):
    """The native step time of ResNet18, measured once a run."""
    if bench.native_resnet_ms is None:
        last = train(bench, "native", None, bench.settings.training_seconds)
        bench.native_resnet_ms = last["step_ms_median"]
    return bench.native_resnet_ms


def resnet_overhead(bench):
    native, tenant = [], []
    for i in range(bench.settings.training_rounds):
        for is_native in ((True, False) if i % 2 == 0 else (False, True)):
            last = train(bench, "resnet", None if is_native else ["--memory", "64GiB"],
                         bench.settings.training_seconds)
            (native if is_native else tenant).append(last["step_ms_median"])
    bench.native_resnet_ms = statistics.median(native)
    here = statistics.median(tenant)
    bench.result.add(Row("ResNet18, batch 128: median step", "ms", here,
                         native=bench.native_resnet_ms))
    added = [100 * (t / n - 1) for n, t in zip(native, tenant)]
    bench.result.add(at_most(Row("ResNet18, quota not binding: added", "%", statistics.median(added), runs=added), 0.5))
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "ResNet18 training, batch 128", bench.result.rows, "ms"))


def resnet_half(bench):
    native = native_step_ms(bench)
    seconds, options = bench.settings.training_seconds, ["--memory", "64GiB", "--cores", "50"]
    last = train(bench, "half", options, seconds)
    other = rival.measured(bench, lambda: train(bench, "rival", None, seconds, bench.rival.environment("half", options)))
    # Uses the mean: throttling makes steps uneven, and a share is about the work done.
    row = Row("ResNet18 at 50 %: mean step over native", "times", last["step_ms_mean"] / native, 2.0,
              native=1.0, rival=other and other["step_ms_mean"] / native)
    bench.result.add(within_pct(row, 5))
    bench.result.add(Row("ResNet18 at 50 %: mean step", "ms", last["step_ms_mean"], 2 * native,
                         native))
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "ResNet18 at half of the GPU", bench.result.rows, "times"))


# As in SEED_MODELS, the GPU sets the pace of each model when it runs alone.
HALVED = (("resnet18", 128), ("transformer", 64), ("gru", 1024))
# How often the program waits, and the length of a window in units of training_seconds. The longer its work lasts between two
# waits, the longer is a slice of a capped program, and a window should hold many slices.
WAITS = ((1, "each step", 0.5), (10, "each 10 steps", 0.75), (0, "never", 1))


def trainings_half(bench):
    """One process trains by turns natively and capped: with liballot.so bypassed, and with it. Two processes may differ by
    several percent for as long as they live. An installed allot has no library with a bypass; then another process trains
    natively."""
    rounds = bench.settings.training_rounds
    with standing_aside(bench.machine) as can_bypass:
        half = Trainer(bench, "half", ["--memory", "64GiB", "--cores", "50"])
        trainers = [half] if can_bypass else [half, Trainer(bench, "native")]
        native = trainers[-1]
        try:
            ready(trainers)
            for model, batch in HALVED:
                take_models(trainers, len(trainers) * [(model, batch)])
                for waits, when, windows in WAITS:
                    for trainer in trainers:
                        trainer.ask("sync", waits)
                    # Whole groups of steps with a wait at their end: natively in a quarter of the capped window's time.
                    group = max(waits, 1)
                    count = half.steps_in(windows * bench.settings.training_seconds / 4)
                    steps = 2 * max(group, 2 * count // group * group)
                    pairs = [(native_epoch_s(native, half, steps // 2), half.epoch_s(steps)) for _ in range(rounds)]
                    runs = [half_s / 2 / native_s for native_s, half_s in pairs]
                    bench.result.add(within_pct(
                        Row(f"{model}, batch {batch}, at 50 %, waits: {when}: step over native", "times",
                            statistics.median(runs), 2.0, native=1.0, runs=runs), bench.bar(1, 20)))
        finally:
            for trainer in trainers:
                trainer.end()
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "Trainings at half of the GPU, by how often they wait for it", bench.result.rows, "times"))


def native_epoch_s(native, half, steps):
    """How long these steps take natively, in the process `native`, or in that of the tenant with liballot.so bypassed."""
    if native is not half:
        return native.epoch_s(steps)
    half.ask("bypass", 1)
    took_s = half.epoch_s(steps)
    half.ask("bypass", 0)
    return took_s


def trainings_half_seconds(settings):
    windows = sum(2 * length for _, _, length in WAITS)
    return 30 + len(HALVED) * (8 + windows * settings.training_seconds * settings.training_rounds)


class MemoryWatch:
    """The most memory that NVML ever shows for a job's processes together, polled during the whole run."""

    def __init__(self, machine, job):
        self.machine = machine
        self.job = job
        self.most_bytes = 0
        self.looks = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self):
        pids, pids_at = set(), 0.0
        while not self.ended.is_set():
            if time.monotonic() - pids_at > 0.1:
                pids, pids_at = self.job.pids(), time.monotonic()
            processes = self.machine.nvml.processes()
            held = sum(used for pid, used in processes.items() if pid in pids)
            self.most_bytes = max(self.most_bytes, held)
            self.looks += 1
            self.ended.wait(0.003)

    def end(self):
        self.ended.set()
        self.thread.join(5)
        return self.most_bytes


def oom(bench):
    quota = 8 << 30
    job = start(bench, "oom", ["--memory", "8GiB"], ["--oom-retry", "--seconds", "5"])
    watch = MemoryWatch(bench.machine, job)
    try:
        job.check(READY_S)
    finally:
        most_bytes = watch.end()
    events = [event for _, event in job.json()]
    refused = [event for event in events if event.get("fits") is False]
    last = events[-1]

    row = Row("refused batches before one fitted", "batches", len(refused))
    row.bar = "at least 1"
    row.passed = len(refused) >= 1 and "out of memory" in (refused[0]["error"] or "")
    bench.result.add(row)
    row = Row("batch that it went on with", "images", last.get("batch", 0))
    row.bar = "trains on"
    row.passed = last.get("steps", 0) > 0
    bench.result.add(row)
    # Reported, not judged: no call shows the code that the driver loads onto the card, so that is
    # in NVML's figure and not yet in the ledger.
    row = Row("most memory by NVML, beyond the quota", "MiB", (most_bytes - quota) / MIB)
    if most_bytes == 0:
        raise Failed("NVML never listed the job's processes")
    bench.result.add(row)
    bench.result.add(Row("most memory by NVML", "MiB", most_bytes / MIB, quota / MIB))
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "PyTorch over its memory quota of 8 GiB", bench.result.rows, "MiB"))


# Share asked for and batch. The batch is large enough that the GPU sets the pace. With a batch of 64 the
# thread that launches the GRU's small kernels would, and its speed depends on the CPU that it runs on
# (72 to 99 steps a second alone on an H200).
SEED_MODELS = {"resnet18": (45, 128), "transformer": (30, 64), "gru": (15, 1024)}


def together_seconds(settings):
    """The length of the window in which all train: 60 s, as in figure 10 of Lu et al., without --seconds and --quick."""
    return 3 * settings.seconds


def seed_models_seconds(settings):
    return count(settings) * (
        45 + 3 * (settings.native_seconds + 1) + together_seconds(settings) + settings.settle_s + 3)


def seed_models(bench):
    """Table 7 and figure 10 of Lu et al."""
    series = {}
    by_policies(bench, lambda prefix: series.update(measure_seed_models(bench, prefix)))
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "Three trainings at 45 / 30 / 15 %: step rate against native alone",
        bench.result.rows, "%"))
    bench.result.charts.append(lambda stem: series and plot.lines(
        stem + "-second.svg", "Three trainings at 45 / 30 / 15 %: step rate in each second", series,
        {name: SEED_MODELS[name][0] for name in series if name in SEED_MODELS}, "%"))


def measure_seed_models(bench, prefix):
    """Native processes and tenants start together, to save time. The native ones are measured one after the other while
    nothing else runs, and have ended before the tenants begin. Returns {model: its share in each second}."""
    native = [Trainer(bench, f"native-{model}") for model in SEED_MODELS]
    tenants = [Trainer(bench, model, ["--memory", "24GiB", "--cores", str(pct)])
               for model, (pct, _) in SEED_MODELS.items()]
    ready(native + tenants)
    models = [(model, batch) for model, (_, batch) in SEED_MODELS.items()]
    take_models(native + tenants, 2 * models)
    alone = [trainer.ask("busy", bench.settings.native_seconds) for trainer in native]
    for trainer in native:
        trainer.end()

    settle_s, seconds = bench.settings.settle_s, together_seconds(bench.settings)
    series = {}
    answers = record_together(tenants, settle_s + seconds)
    for (model, (pct, batch)), before, answer in zip(SEED_MODELS.items(), alone, answers):
        def share(begin, end, of=answer["series"], step_ms=before["step_ms_mean"]):
            return 100 * of.rate(settle_s + begin, settle_s + end) * step_ms / 1e3
        bench.result.add(within(Row(f"{prefix}{model}, batch {batch}, {pct} %: steps a second", "%", share(0, seconds),
                                    pct, native=100.0), bench.bar(0.5, 5)))
        each = [share(second, second + 1) for second in range(int(seconds))]
        bench.result.add(Row(f"{prefix}{model}: 1 s windows, std dev", "points", statistics.pstdev(each)))
        bench.result.add_series(f"{prefix}{model}: steps a second", "%", each)
        series[prefix + model] = each
    for (model, _), before, answer in zip(SEED_MODELS.items(), alone, answers):
        bench.result.add(Row(f"{prefix}{model}: mean step", "ms", answer["step_ms_mean"],
                             native=before["step_ms_mean"]))
        bench.result.add(Row(f"{prefix}{model}: of a native step, GPU idle for the host", "% of it",
                             100 * (1 - before["gpu_ms_mean"] / before["step_ms_mean"])))
    return series
