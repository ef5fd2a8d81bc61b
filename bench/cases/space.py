"""Three trainings at once on one GPU: time-sliced by the hardware, under MPS without allot, and with --sharing space. The
result is the steps a second of all three, divided by those of one training alone on the GPU without allot."""

import statistics

from harness import plot, stats
from harness.mps import plain_mps
from harness.result import Row, at_least
from harness.trainer import Trainer, processors_of_their_own, ready, record_together, take_models

COUNT = 3
MODEL = "resnet18"
TURN_S = {128: 3.0, 16: 1.5}    # by batch
BEGIN_S = 0.5                   # of a turn before its window
END_S = 0.1                     # of a turn after its window
# With the smaller batch the launching threads are the bottleneck, and one process may be faster than another for its whole
# life. More turns do not average that out, so several groups of three trainings are started for each way.
STARTS = {128: 1, 16: 6}
TURNS = {128: 6, 16: 3}         # of each group of three
QUICK_STARTS = {128: 1, 16: 2}
QUICK_TURNS = {128: 2, 16: 1}
PROCESSORS = 4                  # of a training
TENANT = ["--memory", "24GiB", "--sharing", "space"]
LATER_TENANT = ["--memory", "4GiB", "--sharing", "space"]   # measures only the smaller batch
OF_MPS = 0.99                   # of the result under MPS alone


def starts_of(settings):
    return QUICK_STARTS if settings.quick else STARTS


def turns_of(settings):
    return QUICK_TURNS if settings.quick else TURNS


def seconds_of(settings):
    starts, turns = starts_of(settings), turns_of(settings)
    turns_s = sum(turns[batch] * (1 + 2 * starts[batch]) * (turn_s + BEGIN_S + END_S + 0.5)
                  for batch, turn_s in TURN_S.items())
    return 20 + 4 * max(starts.values()) + len(TURN_S) * (settings.native_seconds + 4) + turns_s


def start(bench, way, number, options):
    """Starts a group of three trainings of a way; `number` groups were started before."""
    more = processors_of_their_own(PROCESSORS, COUNT)
    return [Trainer(bench, f"{way}-{number + 1}-{i + 1}", options, more[i]) for i in range(COUNT)]


def start_all(bench):
    """{way: its groups of three}. If --sharing space is refused, that way is left out and the result has the reason."""
    count = max(starts_of(bench.settings).values())
    threes = {"MPS": [start(bench, "mps", i, None) for i in range(count)]}
    refused = bench.machine.refuses(*TENANT)
    if refused:
        bench.result.skip("space", refused)
    else:
        threes["space"] = [start(bench, "space", i, LATER_TENANT if i else TENANT) for i in range(count)]
    return threes


def rate_of(trainers, turn_s):
    """The sum of steps a second of all trainings, which run at the same time."""
    answers = record_together(trainers, BEGIN_S + turn_s + END_S)
    return sum(answer["series"].rate(BEGIN_S, BEGIN_S + turn_s) for answer in answers)


def by_turns(threes, starts, turn_s, turns):
    """{way: [steps a second in each turn, for each of its groups]}. The groups with the same number, one of each way, take
    turns; each round begins with another way."""
    ways = list(threes)
    rates = {way: [[] for _ in threes[way][:starts]] for way in ways}
    for turn in range(turns):
        for i in range(starts):
            for way in ways[turn % len(ways):] + ways[:turn % len(ways)]:
                if i < len(threes[way]):
                    rates[way][i].append(rate_of(threes[way][i], turn_s))
    return rates


def part_of_mps(rates):
    """(result under space divided by that under MPS alone, standard error), over the groups or a single group's turns."""
    parts = [[space / mps for space, mps in zip(*pair)] for pair in zip(rates["space"], rates["MPS"])]
    if len(parts) == 1:
        return statistics.median(parts[0]), stats.error_of_median(parts[0])
    means = [statistics.fmean(part) for part in parts]
    return statistics.fmean(means), statistics.stdev(means) / len(means) ** 0.5


def measure(bench, threes, batch):
    """Adds the rows of a batch. Returns the judged row, or None without --sharing space."""
    starts = starts_of(bench.settings)[batch]
    trainers = [trainer for way in threes.values() for three in way[:starts] for trainer in three]
    take_models(trainers, len(trainers) * [(MODEL, batch)])
    alone = 1e3 / threes["native"][0][0].ask("measure", bench.settings.native_seconds)["step_ms_mean"]
    rates = by_turns(threes, starts, TURN_S[batch], turns_of(bench.settings)[batch])
    work = {way: statistics.fmean(map(statistics.median, of_way)) / alone for way, of_way in rates.items()}
    for way, got in work.items():
        label = f"--sharing {way}" if way == "space" else way
        bench.result.add(Row(f"{COUNT} x ResNet18, batch {batch}, {label}", "x alone", got, native=work["native"]))
    if "space" not in rates:
        return None
    part, error = part_of_mps(rates)
    return Row(f"batch {batch}: of what MPS alone makes of it", "x", part, asked=1, error=error)


def space(bench):
    # The trainings of all ways stay alive, and take turns on the same processors.
    threes = {"native": [start(bench, "native", 0, None)]}
    with plain_mps(bench.machine):
        threes |= start_all(bench)
        everyone = [trainer for way in threes.values() for three in way for trainer in three]
        ready(everyone)
        judged = [measure(bench, threes, batch) for batch in TURN_S]
        for trainer in everyone:
            trainer.end()
    for row in judged if "space" in threes else ():
        bench.result.add(at_least(row, bench.bar(OF_MPS, 0.2)))
        bench.result.add(Row(f"{row.name}: standard error", "x", row.error))
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "Three ResNet18 trainings at once: work of all over that of one alone",
        [row for row in bench.result.rows if row.unit == "x alone"], "x alone"))
