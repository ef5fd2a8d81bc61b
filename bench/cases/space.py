"""Three trainings at once on one card: as the hardware slices them, under MPS without allot, and with --sharing space. The
measure is work: steps a second of all three over those of one that has the card for itself, without allot."""

from harness import plot
from harness.mps import plain_mps
from harness.result import Row, at_least
from harness.trainer import Trainer, ready, record_together, take_models

COUNT = 3
MODEL = "resnet18"
BATCHES = (128, 16)
TENANT = ["--memory", "40GiB", "--sharing", "space"]
OF_MPS = 0.99           # of what MPS alone makes of it


def seconds_of(settings):
    each = len(BATCHES) * (settings.seconds + settings.settle_s + 8)
    return 60 + len(BATCHES) * (settings.native_seconds + 8) + 3 * (30 + each)


def alone(bench):
    """{batch: steps a second} of one."""
    trainer = Trainer(bench, "alone")
    ready([trainer])
    rates = {}
    for batch in BATCHES:
        take_models([trainer], [(MODEL, batch)])
        rates[batch] = 1e3 / trainer.ask("measure", bench.settings.native_seconds)["step_ms_mean"]
    trainer.end()
    return rates


def together(bench, name, options):
    """{batch: steps a second of all}."""
    settle_s, seconds = bench.settings.settle_s, bench.settings.seconds
    trainers = [Trainer(bench, f"{name}-{i + 1}", options) for i in range(COUNT)]
    ready(trainers)
    rates = {}
    for batch in BATCHES:
        take_models(trainers, COUNT * [(MODEL, batch)])
        answers = record_together(trainers, settle_s + seconds)
        rates[batch] = sum(answer["series"].rate(settle_s, settle_s + seconds) for answer in answers)
    for trainer in trainers:
        trainer.end()
    bench.machine.settle()
    return rates


def space(bench):
    one = alone(bench)
    rates = {"native": together(bench, "native", None)}
    with plain_mps(bench.machine):
        rates["MPS"] = together(bench, "mps", None)
    refused = bench.machine.refuses(*TENANT)
    if refused:
        bench.result.skip("space", refused)
    else:
        rates["space"] = together(bench, "space", TENANT)
    for batch in BATCHES:
        native = rates["native"][batch] / one[batch]
        for way, got in rates.items():
            label = f"--sharing {way}" if way == "space" else way
            bench.result.add(Row(f"3 x ResNet18, batch {batch}, {label}", "x alone", got[batch] / one[batch],
                                 native=native))
    for batch in BATCHES if "space" in rates else ():
        part = Row(f"batch {batch}: of what MPS alone makes of it", "x", rates["space"][batch] / rates["MPS"][batch])
        bench.result.add(at_least(part, bench.bar(OF_MPS, 0.2)))
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "Three ResNet18 trainings at once: work of all over that of one alone",
        [row for row in bench.result.rows if row.unit == "x alone"], "x alone"))
