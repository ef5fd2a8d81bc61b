"""Three trainings at once on one card: as the hardware slices them, under MPS without allot, and with --sharing space. The
measure is work: steps a second of all three over those of one that has the card for itself, without allot."""

import statistics

from harness import plot, stats
from harness.mps import plain_mps
from harness.result import Row, at_least
from harness.trainer import Trainer, processors_of_their_own, ready, record_together, take_models

COUNT = 3
MODEL = "resnet18"
TURN_S = {128: 3.0, 16: 1.5}    # by the batch
BEGIN_S = 0.5                   # of a turn, until it counts
END_S = 0.1                     # of one, when it does no more
TURNS = (8, 12)                 # of each way: until the error is small enough, between these
QUICK_TURNS = (2, 2)
ERROR = 0.005                   # of the part of MPS: the bar can be told apart by then
PROCESSORS = 4                  # of a training
TENANT = ["--memory", "40GiB", "--sharing", "space"]
OF_MPS = 0.99                   # of what MPS alone makes of it
WAYS = ("native", "MPS", "space")


def turns_of(settings):
    return QUICK_TURNS if settings.quick else TURNS


def seconds_of(settings):
    turn_s = sum(TURN_S.values()) + len(TURN_S) * (BEGIN_S + END_S + 0.5)
    return 35 + len(TURN_S) * (settings.native_seconds + 8) + 1.2 * turns_of(settings)[0] * len(WAYS) * turn_s


def start(bench, way, options):
    more = processors_of_their_own(PROCESSORS, COUNT)
    return [Trainer(bench, f"{way}-{i + 1}", options, more[i]) for i in range(COUNT)]


def rate_of(trainers, turn_s):
    """Steps a second of all, at once."""
    answers = record_together(trainers, BEGIN_S + turn_s + END_S)
    return sum(answer["series"].rate(BEGIN_S, BEGIN_S + turn_s) for answer in answers)


def by_turns(groups, turn_s, least, most):
    """{way: steps a second of all in each of its turns}: each way in turn, the first one another each time."""
    ways, rates = list(groups), {way: [] for way in groups}
    for turn in range(most):
        for way in ways[turn % len(ways):] + ways[:turn % len(ways)]:
            rates[way].append(rate_of(groups[way], turn_s))
        if turn + 1 >= least and ("space" not in rates or stats.error_of_median(parts(rates)) <= ERROR):
            break
    return rates


def parts(rates):
    """Of what MPS alone makes of it, in the turns next to each other."""
    return [space / mps for space, mps in zip(rates["space"], rates["MPS"])]


def measure(bench, groups, batch):
    """Adds the rows of a batch; returns the one that is judged, if there is space."""
    for trainers in groups.values():
        take_models(trainers, COUNT * [(MODEL, batch)])
    alone = 1e3 / groups["native"][0].ask("measure", bench.settings.native_seconds)["step_ms_mean"]
    rates = by_turns(groups, TURN_S[batch], *turns_of(bench.settings))
    native = statistics.median(rates["native"]) / alone
    for way, got in rates.items():
        label = f"--sharing {way}" if way == "space" else way
        bench.result.add(Row(f"{COUNT} x ResNet18, batch {batch}, {label}", "x alone", statistics.median(got) / alone,
                             native=native))
    if "space" not in rates:
        return None
    of_mps = parts(rates)
    return Row(f"batch {batch}: of what MPS alone makes of it", "x", statistics.median(of_mps),
               error=stats.error_of_median(of_mps))


def space(bench):
    # All ways stay, and take turns on the same processors: from start to start a training that launches without rest differs
    # by several percent, more than what is to be told.
    groups = {"native": start(bench, "native", None)}
    with plain_mps(bench.machine):
        groups["MPS"] = start(bench, "mps", None)
        refused = bench.machine.refuses(*TENANT)
        if refused:
            bench.result.skip("space", refused)
        else:
            groups["space"] = start(bench, "space", TENANT)
        for trainers in groups.values():
            ready(trainers)
        judged = [measure(bench, groups, batch) for batch in TURN_S]
        for trainers in groups.values():
            for trainer in trainers:
                trainer.end()
    for row in judged if "space" in groups else ():
        bench.result.add(at_least(row, bench.bar(OF_MPS, 0.2)))
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "Three ResNet18 trainings at once: work of all over that of one alone",
        [row for row in bench.result.rows if row.unit == "x alone"], "x alone"))
