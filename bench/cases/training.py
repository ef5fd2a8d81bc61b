"""PyTorch trainings (bench/load/torch_load.py), native and in tenants."""

import statistics
import sys
import threading
import time

from harness import plot
from harness.job import Failed
from harness.result import Row, at_most, within

from . import rivals

READY_S = 240       # import of torch, the first steps: a slow disk, a cold cache
MIB = 1 << 20


def start(bench, name, options, model="resnet18", more=(), stdin=False):
    command = [sys.executable, bench.settings.torch_load, "--json", "--model", model, *more]
    return bench.machine.start(name, command, options, stdin)


def train(bench, name, options, seconds, model="resnet18", batch=None):
    """One training alone; its last line."""
    more = ["--batch", str(batch)] if batch else []
    job = start(bench, name, options, model, ["--seconds", str(seconds), *more])
    job.check(READY_S + seconds)
    return job.json()[-1][1]


def native_step_ms(bench):
    """Of ResNet18; measured once a run."""
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
    bench.result.add(at_most(Row("ResNet18, quota not binding: added", "%",
                                 100 * (here / bench.native_resnet_ms - 1)), 0.5))
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "ResNet18 training, batch 128", bench.result.rows, "ms"))


def resnet_half(bench):
    native = native_step_ms(bench)
    last = train(bench, "half", ["--memory", "64GiB", "--cores", "50"],
                 bench.settings.training_seconds)
    # The mean: throttling makes steps uneven, and the work done is what was asked for.
    row = Row("ResNet18 at 50 %: mean step over native", "times", last["step_ms_mean"] / native, 2.0,
              native=1.0, rival=rivals.RESNET_HALF_TIMES)
    row.bar = "within 5 % of asked"
    row.passed = abs(row.got / 2.0 - 1) <= 0.05
    bench.result.add(row)
    bench.result.add(Row("ResNet18 at 50 %: mean step", "ms", last["step_ms_mean"], 2 * native,
                         native))
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "ResNet18 at half of the GPU", bench.result.rows, "times"))


class MemoryWatch:
    """The most that NVML says a job's processes hold together, looked at all the time."""

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
    job = start(bench, "oom", ["--memory", "8GiB"], more=[
        "--oom-retry", "--seconds", "5"])
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
    # Reported, not judged: code that the driver loads into the card is named by no call, so it is
    # in NVML's figure and not yet in the ledger.
    row = Row("most memory by NVML, beyond the quota", "MiB", (most_bytes - quota) / MIB)
    if most_bytes == 0:
        raise Failed("NVML never listed the job's processes")
    bench.result.add(row)
    bench.result.add(Row("most memory by NVML", "MiB", most_bytes / MIB, quota / MIB))
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "PyTorch over its memory quota of 8 GiB", bench.result.rows, "MiB"))


# Share asked for and batch. The batch is large enough that the GPU sets the pace: a GRU of batch 64 is
# paced by the thread that launches its small kernels, and does 72 to 99 steps a second alone (H200), by
# how fast a CPU that thread happens to have.
SEED_MODELS = {"resnet18": (45, 128), "transformer": (30, 64), "gru": (15, 1024)}


def seed_models(bench):
    seconds = bench.settings.training_seconds
    native = {}
    for model, (_, batch) in SEED_MODELS.items():
        last = train(bench, "native", None, seconds, model, batch)
        native[model] = last["steps"] / last["elapsed_s"]

    # All begin together once each has said that it is ready.
    jobs = {model: start(bench, model, ["--memory", "24GiB", "--cores", str(pct)], model,
                         ["--seconds", str(bench.settings.seconds), "--start-on-input",
                          "--batch", str(batch)], stdin=True)
            for model, (pct, batch) in SEED_MODELS.items()}
    for job in jobs.values():
        if job.wait_line(0, READY_S) is None:
            raise Failed(f"{job.name}: ended before it was ready{job.tail()}")
    for job in jobs.values():
        job.say("go")
    for model, job in jobs.items():
        job.check(bench.settings.seconds + 60)
        last = job.json()[-1][1]
        share = 100 * last["steps"] / last["elapsed_s"] / native[model]
        pct, batch = SEED_MODELS[model]
        bench.result.add(within(Row(f"{model}, batch {batch}, {pct} %: steps a second", "%", share,
                                    pct, native=100.0), 1.5))
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "Three trainings at 45 / 30 / 15 %: step rate against native alone",
        bench.result.rows, "%"))
