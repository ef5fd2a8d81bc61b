"""Tables 8 and 9 and figure 11 of Lu et al.: the epoch time of a Transformer with 50 % of the GPU, while four models with 10 %
each arrive, one after every three epochs. The same arrivals without allot are measured first."""

import math
import statistics

from harness import plot, stats
from harness.job import Failed
from harness.result import Row, at_most
from harness.trainer import MODEL_S, Trainer, ready, take_models

from .under_policies import by_policies, count

# Table 8: model, batch, percent of the GPU, GiB. The batch of the target is large enough that the GPU sets its pace.
TARGET = ("transformer", 256, 50, 12)
NEIGHBOURS = (("resnet18", 128, 10, 12), ("shufflenet_v2", 128, 10, 12), ("mobilenet_v3", 64, 10, 12), ("gru", 1024, 10, 18))
EPOCHS = 3          # between two arrivals
START_S = 50        # for the start of all processes
TRAINS_S = 3600     # a neighbour trains until it is ended


def epoch_seconds(settings):
    """The length of the target's epoch natively and alone."""
    return 0.3 if settings.quick else 4.0


def neighbours_of(settings):
    return NEIGHBOURS[:2] if settings.quick else NEIGHBOURS


def seconds_of(settings):
    most = len(neighbours_of(settings)) + 1
    # Natively an epoch is as many times longer as there are processes; with 50 % it is always twice as long.
    epochs = most * (most + 1) / 2 + most * 100 / TARGET[2]
    return count(settings) * (START_S + 1.15 * EPOCHS * epochs * epoch_seconds(settings) + 2 * most)


def arrive(neighbour, model, batch):
    """The neighbour makes its model and trains. It runs already, since importing PyTorch is no work of the GPU."""
    neighbour.say("model", model, batch)
    neighbour.say("measure", TRAINS_S)


def check_arrived(neighbour):
    answer = neighbour.answer(MODEL_S)
    if "error" in answer:
        raise Failed(f"{neighbour.name}: {answer['model']}, batch {answer['batch']}: {answer['error']}")


def epochs_beside(target, neighbours, models, steps):
    """The times of the target's epochs: a list for each number of neighbours, from none on."""
    found = []
    for present in range(len(neighbours) + 1):
        if present:
            arrive(neighbours[present - 1], *models[present - 1][:2])
        found.append([target.epoch_s(steps) for _ in range(EPOCHS)])
        if present:
            check_arrived(neighbours[present - 1])
        for neighbour in neighbours[:present]:
            if neighbour.has_answered() or neighbour.job.process.poll() is not None:
                raise Failed(f"{neighbour.name}: trains no more{neighbour.job.tail()}")
    return found


def options_of(model):
    _, _, pct, gib = model
    return ["--memory", f"{gib}GiB", "--cores", str(pct)]


def loss(alone, beside):
    """How much longer an epoch takes, in percent, and the standard error of that."""
    middle = statistics.median(alone)
    error = math.hypot(stats.error_of_median(alone), stats.error_of_median(beside))
    return 100 * (statistics.median(beside) / middle - 1), 100 * error / middle


def add_rows(bench, prefix, native, tenant):
    name = f"{prefix}{TARGET[0]}, batch {TARGET[1]}, {TARGET[2]} %"
    asked = statistics.median(native[0]) * 100 / TARGET[2]
    for beside, (there, here) in enumerate(zip(native, tenant)):
        bench.result.add(Row(f"{name}, beside {beside}: epoch", "s", statistics.median(here), asked, statistics.median(there),
                             runs=here))
    for beside in range(1, len(native)):
        longer, error = loss(tenant[0], tenant[beside])
        row = Row(f"{name}, beside {beside}: epoch longer than alone", "%", longer, native=loss(native[0], native[beside])[0],
                  error=error)
        bench.result.add(at_most(row, bench.bar(3, 60)))


def arrivals(bench):
    models = neighbours_of(bench.settings)
    series = {}

    def measure(prefix):
        trainings = []
        for options in (lambda _: None, options_of):
            kind = "native" if not trainings else "tenant"
            trainings.append([Trainer(bench, f"{kind}-{model[0]}", options(model)) for model in (TARGET, *models)])
        ready([trainer for row in trainings for trainer in row])
        (target, *neighbours), tenants = trainings
        take_models([target], [TARGET[:2]])
        steps = target.steps_in(epoch_seconds(bench.settings))
        native = epochs_beside(target, neighbours, models, steps)
        for trainer in trainings[0]:
            trainer.end()
        take_models(tenants[:1], [TARGET[:2]])
        tenant = epochs_beside(tenants[0], tenants[1:], models, steps)
        bench.result.add(Row(f"{prefix}epoch", "steps", steps))
        add_rows(bench, prefix, native, tenant)
        series.setdefault("native", sum(native, []))
        series[prefix.removesuffix(": ") or "allot"] = sum(tenant, [])

    by_policies(bench, measure)
    bench.result.charts.append(lambda stem: series and plot.lines(
        stem + ".svg", f"A Transformer at {TARGET[2]} %: its epochs, as after every third one more model arrives", series, {},
        "seconds", "epoch", [str(i + 1) for i in range(EPOCHS * (len(models) + 1))]))
