"""Shares of tenants that run at the same time, with kernels of known cost and with trainings. A share is the work done relative
to the same program alone without a quota. With caps it should equal the share under plain MPS with the same part of the SMs.
With lending it should be at least the guarantee, once the daemon has seen the program's speed while it ran alone."""

from harness import plot
from harness.mps import plain_mps, threads
from harness.result import Row, at_least, at_most, within
from harness.trainer import Trainer, ready, record_together, take_models

from .shares import LARGE, SMALL, add_bars
from .space_ways import MPS, NATIVE_S, SHARING, SPACE, Member, is_offered, measure, over_sum, run_seconds, window_s
from .training import SEED_MODELS

SHARES = (45, 30, 15)
FILLING = ("--streams", "8")    # as many kernels with one block per SM as fit on an SM; two keep it busy
POINTS = (0.7, 5)       # (on a real GPU, on a simulated one)
LEARN_S = 5             # until kernels are timed and the programs' speeds are known


def three_seconds(settings):
    return 3 * NATIVE_S + 8 * run_seconds(settings, window_s(settings)) + 5 * LEARN_S


def of_sum(asked):
    return [100 * pct / sum(asked) for pct in asked]


def add_capped(bench, what, asked, got, mps):
    points = bench.bar(*POINTS)
    for name, pct, work, fixed in zip(what, asked, got, mps):
        bench.result.add(at_least(Row(f"caps, {pct} %, {name}", "%", work, pct, mps=fixed), fixed - points))
    for name, pct, share, now, fixed in zip(what, asked, of_sum(asked), over_sum(got), over_sum(mps)):
        bench.result.add(Row(f"caps, {pct} %, {name}: over the sum", "% of sum", now, share, mps=fixed))


def add_lent(bench, what, asked, got):
    for name, pct, work, share, now in zip(what, asked, got, of_sum(asked), over_sum(got)):
        bench.result.add(Row(f"lending, {pct} %, {name}", "%", work, pct))
        bench.result.add(Row(f"lending, {pct} %, {name}: over the sum", "% of sum", now, share))
    bench.result.add(Row(f"lending, {what[0]} and others: sum of work", "%", sum(got)))


def add_counts(bench, how, what, asked, rates, counts, seconds):
    """Adds the daemon's own figures and their basis, which explain a wrong share. rates: steps a millisecond;
    counts: the daemon's figures at the begin and at the end."""
    for name, pct, rate, first, last in zip(what, asked, rates, *counts):
        def spent_pct(of):
            return 100 * (of(last) - of(first)) / seconds

        row = f"{how}, {pct} %, {name}"
        bench.result.add(Row(f"{row}: as the daemon counts", "%", spent_pct(lambda device: device["used_s"])))
        bench.result.add(Row(f"{row}: held", "%", spent_pct(lambda device: device["pace"]["held_s"])))
        if last["pace"]["known"]:
            told_ms = (last["pace"]["told_s"] - first["pace"]["told_s"]) / (rate * seconds) if rate > 0 else 0
            bench.result.add(Row(f"{row}: a step alone, by its speed", "ms", told_ms / last["pace"]["speed"]))


def works(bench, way, kernel, mode, limit=None):
    members = [Member(f"t{pct}", kernel, pct, limit, mode=mode) for pct in SHARES]
    settle_s = bench.settings.settle_s + (LEARN_S if way == SPACE else 0)
    return [outcome.share_pct for outcome in measure(bench, way, members, window_s(bench.settings), settle_s=settle_s)]


def space_three(bench):
    """Kernels with one block per SM, one after the other, leave most of the GPU to others. So each tenant could have all that
    it requests at once, but its cap must hold."""
    if not is_offered(bench, "45 / 30 / 15 %"):
        return
    for kernel, mode in ((LARGE, ()), (SMALL, FILLING)):
        what = 3 * [f"{kernel}, 8 streams" if mode else str(kernel)]
        fixed = works(bench, MPS, kernel, mode)
        add_capped(bench, what, SHARES, works(bench, SPACE, kernel, mode), fixed)
        add_lent(bench, what, SHARES, works(bench, SPACE, kernel, mode, 100))
    fixed, got = (works(bench, way, SMALL, ()) for way in (MPS, SPACE))
    for pct, work, other in zip(SHARES, got, fixed):
        row = Row(f"no want of room, {pct} %, {SMALL}", "%", work, pct, mps=other)
        bench.result.add(within(row, bench.bar(*POINTS)))
    add_bars(bench, "45 / 30 / 15 % at the same time: work done")


def models_window_s(settings):
    """The window of the cases with lending and with limits."""
    return 0.7 * settings.seconds


def models_seconds(settings):
    return 60 + 9 * (settings.native_seconds / 2 + 1) + 3 * (settings.settle_s + LEARN_S + models_window_s(settings) + 3)


def steps_ms(bench, trainers):
    """The step time of each training in ms, measured one after the other."""
    return [trainer.ask("measure", bench.settings.native_seconds / 2)["step_ms_mean"] for trainer in trainers]


def space_models(bench):
    """All trainings but the lending ones start together, to save time; those that are not measured idle. A tenant with
    --sharing space that is alone and has no quota is an MPS client with the whole GPU. Its steps are measured before and
    after, because those of a GRU differ by some percent between two runs of seconds."""
    if not is_offered(bench, "models at 45 / 30 / 15 %"):
        return
    settings = bench.settings
    asked = [pct for pct, _ in SEED_MODELS.values()]
    models = [(model, batch) for model, (_, batch) in SEED_MODELS.items()]
    names = [f"{model}, batch {batch}" for model, batch in models]

    def tenants(label, *more):
        return [Trainer(bench, f"{label}-{model}", ["--memory", "24GiB", *SHARING, "--cores", str(pct), *more])
                for model, (pct, _) in SEED_MODELS.items()]

    learn_s = settings.settle_s + LEARN_S

    def rates(trainers, counts=None):
        """Steps a millisecond of each training, also while the daemon learns the kernels' lengths. counts: receives the
        daemon's figures for each, at the begin and at the end."""
        def read_counts():
            if counts is not None:
                counts.append([bench.machine.tenant_device(trainer.name) for trainer in trainers])

        seconds = models_window_s(settings)
        answers = record_together(trainers, learn_s + seconds, read_counts, learn_s)
        read_counts()
        for trainer in trainers:
            trainer.end()
        return [[answer["series"].rate(begin, end) / 1e3 for answer in answers]
                for begin, end in ((learn_s, learn_s + seconds), (0, learn_s))]

    capped_counts, lending_counts = [], []
    native = [Trainer(bench, f"native-{model}") for model in SEED_MODELS]
    with plain_mps(bench.machine):
        alone = [Trainer(bench, f"alone-{model}") for model in SEED_MODELS]
        clients = [Trainer(bench, f"mps-{model}", environment=threads(pct)) for model, (pct, _) in SEED_MODELS.items()]
        capped = tenants("cap")
        everyone = native + alone + clients + capped
        ready(everyone)
        take_models(everyone, 4 * models)
        native_ms, before_ms = steps_ms(bench, native), steps_ms(bench, alone)
        for trainer in native:
            trainer.end()
        (fixed, _), (held, held_first) = rates(clients), rates(capped, capped_counts)
        after_ms = steps_ms(bench, alone)
    bench.machine.settle()
    lending = tenants("lend", "--cores-limit", "100")
    ready(lending)
    take_models(lending, models)
    lent, _ = rates(lending, lending_counts)
    capped_rates, lending_rates = held, lent
    alone_ms = [sum(pair) / 2 for pair in zip(before_ms, after_ms)]
    for name, step_ms, without_ms in zip(names, alone_ms, native_ms):
        bench.result.add(Row(f"{name}: a step alone", "ms", step_ms, native=without_ms))
    fixed, held, held_first, lent = ([100 * rate * step_ms for rate, step_ms in zip(found, alone_ms)]
                                     for found in (fixed, held, held_first, lent))
    add_capped(bench, names, asked, held, fixed)
    for name, pct, first in zip(names, asked, held_first):
        bench.result.add(Row(f"caps, {pct} %, {name}, while lengths are learnt: first {learn_s:g} s", "%", first, pct))
    add_counts(bench, "caps", names, asked, capped_rates, capped_counts, models_window_s(settings))
    add_lent(bench, names, asked, lent)
    add_counts(bench, "lending", names, asked, lending_rates, lending_counts, models_window_s(settings))
    add_bars(bench, "Three trainings at 45 / 30 / 15 % at the same time, caps: step rate against alone")


def fifty_seconds(settings):
    return NATIVE_S + 4 * run_seconds(settings, window_s(settings)) + 2 * LEARN_S


def space_fifty(bench):
    if not is_offered(bench, "50 % beside four"):
        return
    seconds = window_s(bench.settings)
    fifty = Member("fifty", LARGE, 50)
    everyone = [fifty] + [Member(f"ten{i}", LARGE, 10) for i in range(4)]
    alone, beside, others, first = {}, {}, {}, {}
    for way in (MPS, SPACE):
        settle_s = bench.settings.settle_s + (LEARN_S if way == SPACE else 0)
        alone[way] = measure(bench, way, [fifty], seconds, settle_s=settle_s)[0].share_pct
        outcomes = measure(bench, way, everyone, seconds, settle_s=settle_s)
        beside[way], *others[way] = [outcome.share_pct for outcome in outcomes]
        first[way] = outcomes[0].windows(settle_s, 0, settle_s)[0]
    lost = {way: 100 * (1 - beside[way] / alone[way]) for way in alone}
    bench.result.add(Row("50 % alone", "%", alone[SPACE], 50, mps=alone[MPS]))
    bench.result.add(Row("50 % beside four at 10 %", "%", beside[SPACE], 50, mps=beside[MPS]))
    bench.result.add(at_most(Row("50 % beside four at 10 %: work lost", "% of it", lost[SPACE], mps=lost[MPS]),
                             bench.bar(1, 10)))
    row = Row(f"50 % beside four at 10 %, while lengths are learnt: first {bench.settings.settle_s + LEARN_S:g} s", "%",
              first[SPACE], 50, mps=first[MPS])
    bench.result.add(row)
    for i, (got, fixed) in enumerate(zip(others[SPACE], others[MPS]), 1):
        bench.result.add(Row(f"beside it, 10 %, number {i}", "%", got, 10, mps=fixed))
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "50 % beside four at 10 %, at the same time: work done", bench.result.rows, "%"))
