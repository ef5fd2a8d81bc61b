"""How fast shares adapt to a changed share, to a new tenant, and to requests with priority."""

import tempfile
import time

from harness import plot, stats
from harness.load import Kernel, Load
from harness.result import Row, at_least, at_most

from .shares import MEMORY, capped, fair

FINE = Kernel(200, 8192)        # a window of 10 ms holds 50 of them
WINDOW_S = 0.01
SLIDING = 20                    # windows: the judged values are means of 200 ms, which is a few turns
POINTS = 6
HOLD_S = 0.5
REQUEST = Kernel(500, 8192)
BURST = 10                      # a request is 5 ms of work, each 50 ms
PERIOD_MS = 50
INFERENCE = [*MEMORY, "--cores", "20", "--cores-limit", "100"]
TRAINER = Kernel(1000, 8192)
TRAINERS = (1, 3)
GAIN = 1.5                      # by which priority shortens a request at least, beside several trainers


def judge_step(bench, name, outcome, step_s, before, target):
    """Adds the rows of one response. Returns its sliding means for a chart."""
    end = outcome.settle_s + outcome.seconds
    windows = outcome.windows(WINDOW_S, step_s - WINDOW_S * SLIDING, end)
    means = stats.sliding(windows, SLIDING)
    times = [i * WINDOW_S for i in range(len(means))]
    settled = stats.settling(times, means, target, POINTS, HOLD_S)
    if settled is None:
        bench.result.skip(f"{name}: settling",
                          f"did not stay within {POINTS} of {target} % for {HOLD_S} s")
    else:
        bench.result.add(Row(f"{name}: settled within {POINTS}, 200 ms means", "ms",
                             1e3 * settled))
    after = [i for i, value in enumerate(means)
             if (value >= target) == (target > before)] or [len(means) - 1]
    bench.result.add(Row(f"{name}: overshoot, 200 ms means", "points",
                         stats.overshoot(means[after[0]:], before, target)))
    rest = [value for t, value in zip(times, means) if settled is not None and t >= settled]
    if rest:
        bench.result.add(Row(f"{name}: after that, mean", "%", stats.mean(rest), target))
    return means


def set_step(bench, label=""):
    """`allot set` raises a share from 20 % to 60 %."""
    steps = []
    at = bench.settings.settle_s + 1

    def change():
        begin = time.time()
        bench.machine.tell("set", "stepped", "--cores", "60", "--cores-limit", "60")
        steps.append((begin, time.time()))
    outcome, = bench.loads.run([capped("stepped", FINE, 20)], step_seconds(bench.settings),
                               report_s=WINDOW_S, events=[(at, change)])
    took_ms = 1e3 * (steps[-1][1] - steps[-1][0])
    bench.result.add(Row(f"{label}allot set 20 to 60 %: the command itself", "ms", took_ms))
    # The response is counted from the start of the command, because a user waits from then on.
    return judge_step(bench, f"{label}allot set 20 to 60 %", outcome, at, 20, 60)


def arrival(bench, label=""):
    """A tenant alone has the whole GPU; then a second tenant with the same guarantee begins to work."""
    at = bench.settings.settle_s + 1
    with tempfile.NamedTemporaryFile("w", suffix=".trace", encoding="utf-8") as trace:
        trace.write(f"0 {at:.3f} 10000\n")
        trace.flush()
        loads = [fair("first", FINE, 50), fair("second", FINE, 50)]
        loads[1].more = ("--trace", trace.name)
        first, second = bench.loads.run(loads, step_seconds(bench.settings), report_s=WINDOW_S)
    first_ms = second.last["phases"][0].get("first_ms")
    if first_ms is not None:
        bench.result.add(Row(f"{label}a second tenant comes: its first kernel done after", "ms",
                             first_ms))
    judge_step(bench, f"{label}a second tenant comes, the first", first, at, 100, 50)
    return judge_step(bench, f"{label}a second tenant comes, the second", second, at, 0, 50)


def step_seconds(settings):
    return 2.5 if settings.quick else 5.0


def step(bench):
    found, targets = {}, {"allot set 20 to 60 %": 60, "a second tenant comes, its share": 50}
    if bench.machine.sharing == "space":
        bench.result.skip("allot set 20 to 60 %", "MPS fixes a client's most when it starts")
    else:
        found["allot set 20 to 60 %"] = set_step(bench)
    found["a second tenant comes, its share"] = arrival(bench)
    bench.result.charts.append(lambda stem: plot.lines(
        stem + ".svg", "Step responses: means of 200 ms, each 10 ms", found, targets, "% of the GPU",
        "10 ms steps"))


def latency(outcome, key="p99"):
    return outcome.last["latency_ms"][key]


def priority(bench):
    refused = bench.machine.refuses("--priority", "50")
    alone, = bench.loads.run([request(bench, INFERENCE)], bench.settings.seconds)
    bench.result.add(Row("inference alone: 99th percentile", "ms", latency(alone)))
    for count in TRAINERS:
        beside_trainers(bench, count, alone, refused)
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "5 ms of inference each 50 ms beside trainers", bench.result.rows, "ms"))


def request(bench, options):
    # Requests before the window do not count: the first one meets trainings that used the whole GPU, and delays others.
    return Load("inference", REQUEST, options, ("--burst", str(BURST), "--period-ms", str(PERIOD_MS),
                                                "--warmup", str(bench.settings.settle_s)))


def beside_trainers(bench, count, alone, refused):
    """The same requests natively, with the trainers' priority, and with a higher one."""
    what = "a trainer" if count == 1 else f"{count} trainers"

    def run(options, trainer_options, seconds):
        trainers = [Load(f"trainer{i}", TRAINER, trainer_options) for i in range(count)]
        inference, *others = bench.loads.run([request(bench, options), *trainers], seconds)
        return inference, sum(outcome.share_pct for outcome in others)
    shared = fair("trainer", TRAINER, int(80 / count)).options
    native, native_work = run(None, None, bench.settings.native_seconds)
    equal, _ = run(INFERENCE, shared, bench.settings.seconds)
    for key, name in (("p99", "p99"), ("p50", "median")):
        bench.result.add(Row(f"inference beside {what}, same priority: {name}", "ms",
                             latency(equal, key), latency(alone, key), latency(native, key)))
    if refused:
        bench.result.skip(f"inference with priority beside {what}", refused)
        return
    first, work = run([*INFERENCE, "--priority", "50"], shared, bench.settings.seconds)
    row = Row(f"inference with priority beside {what}: p99", "ms", latency(first), latency(alone), latency(native))
    bench.result.add(at_most(row, round(bench.bar(2, 4) * latency(alone, "p50"), 2)))
    bench.result.add(Row(f"inference with priority beside {what}: median", "ms",
                         latency(first, "p50"), latency(alone, "p50"), latency(native, "p50")))
    # If equal priority is as good, the scene does not show what priority does. Beside one trainer it is as good: not judged.
    gain = Row(f"inference beside {what}: median at the same priority, over that with priority", "x",
               latency(equal, "p50") / latency(first, "p50"))
    bench.result.add(at_least(gain, GAIN) if count > 1 else gain)
    bench.result.add(at_least(Row(f"{what} beside it: work", "%", work, 90, native_work), bench.bar(85, 70)))
