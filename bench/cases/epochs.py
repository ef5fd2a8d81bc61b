"""GPU use of a training over time, and epoch time as a function of the compute quota and of the memory quota (figures 7, 8 and
9 of Lu et al.). One native process and one tenant run; `allot set` changes the tenant's quota between epochs."""

import statistics
import time

from harness import plot, stats
from harness.job import Failed
from harness.nvml import Unavailable
from harness.result import Row, at_most, within, within_pct
from harness.trainer import Trainer, ready, take_models
from load.trainings.table import BATCHES

from .under_policies import by_policies, count

ROOM_MIB = 64 * 1024
ROOM = ["--memory", f"{ROOM_MIB}MiB"]
START_S = 30            # for the start of the processes
BUILD_S = 4             # of a model
DEMAND_PCT = 60         # percent of the GPU that the model is made to demand
NEAR_POINTS = 5         # above the demand: work comes in steps, so such a quota may bind at times
EPOCHS = 3              # under each quota, as in the paper


def epoch_seconds(settings):
    """The length of an epoch without a binding quota."""
    return 0.6 if settings.quick else 2.5


def settle_seconds(settings):
    """How long to wait after a change of the quota."""
    return 0.5 if settings.quick else 1.0


def epochs_s(trainer, steps):
    return [trainer.epoch_s(steps) for _ in range(EPOCHS)]


def median_row(name, runs, asked=None, native=None):
    return Row(name, "s", statistics.median(runs), asked, native, runs=runs)


# ---- figures 7 and 8

def busy_seconds(settings):
    return 1.0 if settings.quick else 2.5


def series_seconds(settings):
    """The length of figure 7."""
    return 4 if settings.quick else 100


def saturated(settings):
    return (50,) if settings.quick else (25, 50, 75)


def quotas(settings):
    return (30, 60, 100) if settings.quick else tuple(range(10, 101, 10))


def expected_s(native_s, demand_pct, quota_pct):
    """Expected epoch time under a quota: inversely proportional to the quota below the model's demand, unchanged above."""
    return native_s * max(1.0, demand_pct / quota_pct)


def quota_seconds(settings):
    under = [max(1, DEMAND_PCT / pct) for pct in quotas(settings)] + [100 / pct for pct in saturated(settings)]
    return count(settings) * (
        START_S + 2 * BUILD_S + busy_seconds(settings) + 2 * series_seconds(settings) +
        (EPOCHS * (3 + sum(under)) + 2) * 1.1 * epoch_seconds(settings) + (len(under) + 1) * 1.5 * settle_seconds(settings))


def watch(trainer, seconds, sensors):
    """({name: a reading for each second of this training}, the training's report). sensors: {name: function}. A sensor that is
    not available has no readings."""
    trainer.say("busy", seconds)
    begin, seen = time.monotonic(), {name: [] for name in sensors}
    for second in range(1, seconds + 1):
        time.sleep(max(0.0, begin + second - time.monotonic()))
        for name, read in sensors.items():
            try:
                seen[name].append(read())
            except Unavailable:
                pass
    return {name: values for name, values in seen.items() if values}, trainer.answer(60)


def add_watched(bench, prefix, readings, demand_pct):
    """The rows and series of figure 7."""
    for name, values in readings.items():
        bench.result.add_series(f"{prefix}GPU use, {name}", "%", values)
        bench.result.add(Row(f"{prefix}GPU use, {name}: mean of {len(values)} s", "%", stats.mean(values), demand_pct))
        bench.result.add(Row(f"{prefix}GPU use, {name}: std dev", "points", statistics.pstdev(values)))


def make_demand(bench, native):
    """Makes the native training pause on the host after each step, so that it keeps the GPU busy for DEMAND_PCT of the
    time. Returns (pause in ms, measured demand in percent, readings of NVML while it trains).

    The GPU counts as busy between two events, before a step's first kernel and after its last one."""
    step_ms = native.ask("busy", busy_seconds(bench.settings))["gpu_ms_mean"]
    pause_ms = step_ms * (100 / DEMAND_PCT - 1)
    native.ask("pause", f"{pause_ms:.3f}")
    readings, alone = watch(native, series_seconds(bench.settings),
                            {"native, by NVML": bench.machine.nvml.utilization_pct})
    return pause_ms, 100 * alone["gpu_ms_mean"] / alone["step_ms_mean"], readings


def set_cores(bench, tenant, pct):
    tenant.set("--cores", str(pct), "--cores-limit", str(pct))
    tenant.ask("measure", settle_seconds(bench.settings))


def watch_tenant(bench, tenant):
    """Figure 7 of a tenant whose quota does not bind."""
    set_cores(bench, tenant, 100)
    readings, _ = watch(tenant, series_seconds(bench.settings), {
        "tenant at 100 %, by allot": lambda: bench.machine.tenant_device(tenant.name)["got_1s_pct"],
        "tenant at 100 %, by NVML": bench.machine.nvml.utilization_pct})
    return readings


def under_quotas(bench, prefix, tenant, steps, native_s, demand_pct):
    """Adds a row for each quota. Returns the series of a chart: (measured, asked)."""
    got, asked = [], []
    for pct in quotas(bench.settings):
        set_cores(bench, tenant, pct)
        is_above = pct > demand_pct + NEAR_POINTS
        asked.append(native_s if is_above else expected_s(native_s, demand_pct, pct))
        row = median_row(f"{prefix}wants {DEMAND_PCT} %, quota {pct} %: epoch", epochs_s(tenant, steps), asked[-1], native_s)
        got.append(row.got)
        tolerance = bench.bar(1, 15) if is_above else bench.bar(3, 15)
        bench.result.add(within_pct(row, tolerance))
    return got, asked


def epoch_quota(bench):
    model, batch = "resnet18", BATCHES["resnet18"][0]
    epochs, uses = {}, {}       # the lines of the two charts

    def measure(prefix):
        native, tenant = Trainer(bench, "native"), Trainer(bench, "quota", ROOM)
        ready((native, tenant))
        take_models((native, tenant), 2 * [(model, batch)])
        full_steps = native.steps_in(epoch_seconds(bench.settings))
        full_s = statistics.median(epochs_s(native, full_steps))
        pause_ms, demand_pct, readings = make_demand(bench, native)
        bench.result.add(Row(f"{prefix}native: GPU busy, by events", "%", demand_pct, DEMAND_PCT))
        bench.result.add(Row(f"{prefix}pause of the host after each step", "ms", pause_ms))
        steps = native.steps_in(epoch_seconds(bench.settings))
        native_s = statistics.median(epochs_s(native, steps))
        bench.result.add(Row(f"{prefix}{model}, batch {batch}: epoch, with the pause", "steps", steps))
        bench.result.add(Row(f"{prefix}{model}, batch {batch}: epoch, without", "steps", full_steps))

        for pct in saturated(bench.settings):
            set_cores(bench, tenant, pct)
            row = median_row(f"{prefix}wants all, quota {pct} %: epoch", epochs_s(tenant, full_steps),
                             expected_s(full_s, 100, pct), full_s)
            bench.result.add(within_pct(row, bench.bar(3, 15)))
        tenant.ask("pause", f"{pause_ms:.3f}")
        readings.update(watch_tenant(bench, tenant))
        add_watched(bench, prefix, readings, demand_pct)
        uses.update({prefix + name: values for name, values in readings.items()})
        got, asked = under_quotas(bench, prefix, tenant, steps, native_s, demand_pct)
        epochs[prefix.removesuffix(": ") or "allot"] = got
        epochs.setdefault("inverse below the demand, flat above", asked)
        # Shows how far the GPU's speed has drifted during the bench.
        bench.result.add(median_row(f"{prefix}wants {DEMAND_PCT} %, native again at the end: epoch", epochs_s(native, steps),
                                    native=native_s))

    by_policies(bench, measure)
    ticks = [f"{pct} %" for pct in quotas(bench.settings)]
    bench.result.charts.append(lambda stem: epochs and plot.lines(
        stem + ".svg", f"{model}, batch {batch}, wants {DEMAND_PCT} %: epoch against its quota",
        epochs, {}, "seconds", "quota", ticks))
    bench.result.charts.append(lambda stem: uses and plot.lines(
        stem + "-use.svg", f"{model}, batch {batch}, wants {DEMAND_PCT} %: use of the GPU", uses, {}, "%"))


# ---- figure 9

SEED_MODELS = ("resnet18", "transformer", "gru")
FACTORS = (1.25, 1.5, 2)        # of the memory that the model was seen to hold
REFUSED_MS = 1000
MIB = 1 << 20
STEP_MIB = 256


def memory_models(settings):
    return SEED_MODELS[:1] if settings.quick else SEED_MODELS


def rounds(settings):
    return 2 if settings.quick else 6


def memory_seconds(settings):
    epochs = 3 + rounds(settings) * (len(FACTORS) + 1)
    each = epochs * (BUILD_S / 2 + 1.1 * epoch_seconds(settings)) + 6
    return count(settings) * (START_S + len(memory_models(settings)) * each)


def held_mib(bench, tenant):
    return bench.machine.tenant_device(tenant.name)["memory_used_bytes"] / MIB


def set_memory(tenant, mib):
    tenant.ask("free")
    tenant.set("--memory", f"{mib:.0f}MiB")


def rounded_up(mib):
    return -(-mib // STEP_MIB) * STEP_MIB


def too_little(bench, tenant, name, model, batch, need_mib):
    """A quota of half of the model's memory, if the process holds less than that without the model."""
    tenant.ask("free")
    mib = max(need_mib / 2, held_mib(bench, tenant) + STEP_MIB)
    if mib >= 0.9 * need_mib:
        raise Failed(f"{name}: holds {need_mib:.0f} MiB, no more than the process without it")
    set_memory(tenant, mib)
    answer = tenant.ask("model", model, batch)
    row = at_most(Row(f"{name}, {mib / 1024:.2f} GiB: an error after", "ms",
                      1e3 * answer["took_s"]), bench.bar(REFUSED_MS, 5 * REFUSED_MS))
    row.bar += ", out of memory"
    row.passed = row.passed and "out of memory" in answer.get("error", "")
    row.judge = None    # of several runs all must pass
    bench.result.add(row)


def by_rounds(measure, sizes, count_of_rounds):
    """Measures each size once in every round. The next round begins with the next size, so that a drift of the GPU's speed
    affects all alike. Returns {size: a figure for each round}."""
    found = {size: [] for size in sizes}
    for turn in range(count_of_rounds):
        first = turn % len(sizes)
        for size in [*sizes[first:], *sizes[:first]]:
            found[size].append(measure(size))
    return found


def under_memory_quotas(bench, prefix, native, tenant, model):
    batch = BATCHES[model][0]
    name = f"{prefix}{model}, batch {batch}"
    take_models((native,), [(model, batch)])
    steps = native.steps_in(epoch_seconds(bench.settings))
    native_s = native.epoch_s(steps)
    native.ask("free")

    def epoch_s(mib):
        set_memory(tenant, mib)
        take_models((tenant,), [(model, batch)])
        return tenant.epoch_s(steps)
    epoch_s(ROOM_MIB)
    need_mib = held_mib(bench, tenant)
    if need_mib < STEP_MIB:
        raise Failed(f"{name}: holds no GPU memory according to allot ps")
    bench.result.add(Row(f"{name}: held", "GiB", need_mib / 1024))
    # Before the rounds, which then also show that the process trains on after the error.
    too_little(bench, tenant, name, model, batch, need_mib)
    sizes = [rounded_up(factor * need_mib) for factor in FACTORS]
    found = by_rounds(epoch_s, [ROOM_MIB, *sizes], rounds(bench.settings))
    bench.result.add(median_row(f"{name}, {ROOM_MIB // 1024} GiB: epoch of {steps} steps", found[ROOM_MIB], native=native_s))
    for mib in sizes:
        size = f"{name}, {mib / 1024:g} GiB: epoch"
        bench.result.add(median_row(size, found[mib], statistics.median(found[ROOM_MIB]), native_s))
        runs = [100 * here / there for here, there in zip(found[mib], found[ROOM_MIB])]
        bench.result.add(within(Row(f"{size}, of that with {ROOM_MIB // 1024} GiB", "%", statistics.median(runs), 100.0,
                                    runs=runs), bench.bar(1, 15)))
    tenant.ask("free")


def epoch_memory(bench):
    def measure(prefix):
        native, tenant = Trainer(bench, "native"), Trainer(bench, "memory", ROOM)
        ready((native, tenant))
        for model in memory_models(bench.settings):
            under_memory_quotas(bench, prefix, native, tenant, model)

    by_policies(bench, measure)
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "Epoch against a memory quota that suffices", bench.result.rows, "s"))
