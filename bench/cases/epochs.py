"""Epoch time as a function of the compute quota and of the memory quota (figures 8 and 9 of Lu et al.). One native process
and one tenant run; `allot set` changes the tenant's quota between epochs."""

import time

from harness import plot, stats
from harness.job import Failed
from harness.nvml import Unavailable
from harness.result import Row, at_most, within_pct
from harness.trainer import Trainer, ready, take_models
from load.trainings.table import BATCHES

ROOM = ["--memory", "64GiB"]
START_S = 30            # for the start of the processes
BUILD_S = 4             # of a model
DEMAND_PCT = 60         # percent of the GPU that the model is made to demand
NEAR_POINTS = 5         # above the demand: work comes in steps, so such a quota may bind at times


def epoch_seconds(settings):
    """The length of an epoch without a binding quota."""
    return 0.6 if settings.quick else 2.5


def settle_seconds(settings):
    """How long to wait after a change of the quota."""
    return 0.5 if settings.quick else 1.0


# ---- figure 8

def busy_seconds(settings):
    return 1.0 if settings.quick else 2.5


def saturated(settings):
    return (50,) if settings.quick else (25, 50, 75)


def quotas(settings):
    return (30, 60, 100) if settings.quick else tuple(range(10, 101, 10))


def expected_s(native_s, demand_pct, quota_pct):
    """Expected epoch time under a quota: inversely proportional to the quota below the model's demand, unchanged above."""
    return native_s * max(1.0, demand_pct / quota_pct)


def quota_seconds(settings):
    epochs = 4 + sum(max(1, DEMAND_PCT / pct) for pct in quotas(settings)) + \
        sum(100 / pct for pct in saturated(settings))
    changes = len(quotas(settings)) + len(saturated(settings))
    return START_S + 2 * BUILD_S + 2 * busy_seconds(settings) + \
        epochs * 1.1 * epoch_seconds(settings) + changes * 1.5 * settle_seconds(settings)


def watch_busy(bench, trainer, seconds):
    """(the native training's own report of its steps, mean NVML device utilization during them or None)."""
    trainer.say("busy", seconds)
    begin, seen = time.monotonic(), []
    while not trainer.has_answered() and time.monotonic() < begin + seconds:
        time.sleep(0.1)
        if time.monotonic() > begin + seconds / 2:      # NVML's value covers the time before the call
            try:
                seen.append(bench.machine.nvml.utilization_pct())
            except Unavailable:
                break
    return trainer.answer(60), stats.mean(seen) if seen else None


def make_demand(bench, native):
    """Makes the native training pause on the host after each step, so that it keeps the GPU busy for DEMAND_PCT of the
    time. Returns (pause in ms, measured demand in percent).

    The GPU counts as busy between two events, before a step's first kernel and after its last one."""
    seconds = busy_seconds(bench.settings)
    step_ms = native.ask("busy", seconds / 2)["gpu_ms_mean"]
    pause_ms = step_ms * (100 / DEMAND_PCT - 1)
    native.ask("pause", f"{pause_ms:.3f}")
    alone, nvml_pct = watch_busy(bench, native, seconds)
    demand_pct = 100 * alone["gpu_ms_mean"] / alone["step_ms_mean"]
    bench.result.add(Row("native: GPU busy, by events", "%", demand_pct, DEMAND_PCT))
    if nvml_pct is not None:
        bench.result.add(Row("native: GPU busy, by NVML's device utilization", "%", nvml_pct,
                             DEMAND_PCT))
    bench.result.add(Row("pause of the host after each step", "ms", pause_ms))
    return pause_ms, demand_pct


def set_cores(bench, tenant, pct):
    tenant.set("--cores", str(pct), "--cores-limit", str(pct))
    tenant.ask("measure", settle_seconds(bench.settings))


def under_quotas(bench, tenant, steps, native_s, demand_pct):
    """Adds a row for each quota. Returns the series of a chart."""
    got, asked = [], []
    for pct in quotas(bench.settings):
        set_cores(bench, tenant, pct)
        got.append(tenant.epoch_s(steps))
        is_above = pct > demand_pct + NEAR_POINTS
        asked.append(native_s if is_above else expected_s(native_s, demand_pct, pct))
        row = Row(f"wants {DEMAND_PCT} %, quota {pct} %: epoch", "s", got[-1], asked[-1], native_s)
        tolerance = bench.bar(1, 15) if is_above else bench.bar(3, 15)
        bench.result.add(within_pct(row, tolerance))
    return {"allot": got, "inverse below the demand, flat above": asked}


def epoch_quota(bench):
    model, batch = "resnet18", BATCHES["resnet18"][0]
    native, tenant = Trainer(bench, "native"), Trainer(bench, "quota", ROOM)
    ready((native, tenant))
    take_models((native, tenant), 2 * [(model, batch)])
    full_steps = native.steps_in(epoch_seconds(bench.settings))
    full_s = native.epoch_s(full_steps)
    pause_ms, demand_pct = make_demand(bench, native)
    steps = native.steps_in(epoch_seconds(bench.settings))
    native_s = native.epoch_s(steps)
    bench.result.add(Row(f"{model}, batch {batch}: epoch, with the pause", "steps", steps))
    bench.result.add(Row(f"{model}, batch {batch}: epoch, without", "steps", full_steps))

    for pct in saturated(bench.settings):
        set_cores(bench, tenant, pct)
        row = Row(f"wants all, quota {pct} %: epoch", "s", tenant.epoch_s(full_steps),
                  expected_s(full_s, 100, pct), full_s)
        bench.result.add(within_pct(row, bench.bar(3, 15)))
    tenant.ask("pause", f"{pause_ms:.3f}")
    series = under_quotas(bench, tenant, steps, native_s, demand_pct)
    # Shows how far the GPU's speed has drifted during the bench.
    bench.result.add(Row(f"wants {DEMAND_PCT} %, native again at the end: epoch", "s",
                         native.epoch_s(steps), native=native_s))
    ticks = [f"{pct} %" for pct in quotas(bench.settings)]
    bench.result.charts.append(lambda stem: plot.lines(
        stem + ".svg", f"{model}, batch {batch}, wants {DEMAND_PCT} %: epoch against its quota",
        series, {}, "seconds", "quota", ticks))


# ---- figure 9

SEED_MODELS = ("resnet18", "transformer", "gru")
FACTORS = (1.25, 1.5, 2)        # of the memory that the model was seen to hold
REFUSED_MS = 1000
MIB = 1 << 20
STEP_MIB = 256


def memory_models(settings):
    return SEED_MODELS[:1] if settings.quick else SEED_MODELS


def memory_seconds(settings):
    each = (len(FACTORS) + 3) * (BUILD_S / 2 + 1.2 * epoch_seconds(settings)) + 6
    return START_S + len(memory_models(settings)) * each


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


def under_memory_quotas(bench, native, tenant, model):
    batch = BATCHES[model][0]
    name = f"{model}, batch {batch}"
    room_mib = 64 * 1024
    take_models((native,), [(model, batch)])
    steps = native.steps_in(epoch_seconds(bench.settings))
    native_s = native.epoch_s(steps)
    native.ask("free")

    def epoch_s(mib):
        set_memory(tenant, mib)
        take_models((tenant,), [(model, batch)])
        return tenant.epoch_s(steps)
    room_s = epoch_s(room_mib)
    need_mib = held_mib(bench, tenant)
    if need_mib < STEP_MIB:
        raise Failed(f"{name}: holds no GPU memory according to allot ps")
    bench.result.add(Row(f"{name}: held", "GiB", need_mib / 1024))
    bench.result.add(Row(f"{name}, 64 GiB: epoch of {steps} steps", "s", room_s, native=native_s))
    sizes = [rounded_up(factor * need_mib) for factor in FACTORS]
    for mib in sizes:
        row = Row(f"{name}, {mib / 1024:g} GiB: epoch", "s", epoch_s(mib), room_s, native_s)
        bench.result.add(within_pct(row, bench.bar(1, 15)))
    too_little(bench, tenant, name, model, batch, need_mib)
    row = Row(f"{name}, then 64 GiB again: epoch", "s", epoch_s(room_mib), room_s, native_s)
    bench.result.add(within_pct(row, bench.bar(1, 15)))
    tenant.ask("free")


def epoch_memory(bench):
    native, tenant = Trainer(bench, "native"), Trainer(bench, "memory", ROOM)
    ready((native, tenant))
    for model in memory_models(bench.settings):
        under_memory_quotas(bench, native, tenant, model)
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "Epoch against a memory quota that suffices", bench.result.rows, "s"))
