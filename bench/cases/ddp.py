"""A PyTorch DistributedDataParallel job with half of each of two GPUs, beside another training on each GPU."""

from harness import plot
from harness.result import Row, at_most, within
from harness.trainer import Trainer, ready, record_together, take_models
from load.trainings.table import BATCHES

GPUS = 2
HALF = 50
MODEL = "resnet18"
MEMORY = ["--memory", "32GiB"]
START_S = 45            # for the start of six processes at once, with their models
POINTS = 2
LONGEST = 16            # a step, of the longest one alone: it waits for half of the time, and for a gang's turn of 0.1 s on each GPU


def seconds_of(settings):
    return START_S + 3 * (settings.native_seconds + 1.5) + settings.seconds + \
        settings.settle_s + 3


def device_of(bench, gpu):
    """Options that put a native training on this GPU. A tenant needs none: its first device is the GPU that it was given."""
    return () if bench.settings.torch_options else ("--device", f"cuda:{gpu}")


def start(bench):
    """Starts the trainings natively and as tenants: the job on both GPUs, and one training on each GPU."""
    ranks = ("--ranks", str(GPUS))
    share = [*MEMORY, "--cores", str(HALF)]
    native = [Trainer(bench, "native-ddp", None, ranks)] + [
        Trainer(bench, f"native{gpu}", None, device_of(bench, gpu)) for gpu in range(GPUS)]
    both = ",".join(map(str, range(GPUS)))
    tenants = [Trainer(bench, "ddp", ["--gpu", both, *share], ranks)] + [
        Trainer(bench, f"single{gpu}", ["--gpu", str(gpu), *share]) for gpu in range(GPUS)]
    ready(native + tenants)
    take_models(native + tenants, len(native + tenants) * [(MODEL, BATCHES[MODEL][0])])
    return native, tenants


def rates(answers, begin, end):
    return [answer["series"].rate(begin, end) for answer in answers]


def ddp_half(bench):
    if bench.machine.nvml.count() < GPUS:
        bench.result.skip(f"DDP on {GPUS} GPUs", "one GPU")
        return
    settle_s = bench.settings.settle_s
    short = (settle_s, settle_s + bench.settings.native_seconds)
    window = (settle_s, settle_s + bench.settings.seconds)
    native, tenants = start(bench)

    # Each alone, then together without allot, then together with it.
    alone_answers = [*record_together(native[:1], short[1]), *record_together(native[1:], short[1])]
    alone = rates(alone_answers, *short)
    unmanaged = rates(record_together(native, short[1]), *short)
    for trainer in native:
        trainer.end()
    answers = record_together(tenants, window[1])
    got = rates(answers, *window)

    labels = [f"{MODEL} over {GPUS} GPUs"] + [f"{MODEL} on GPU {gpu} beside it"
                                              for gpu in range(GPUS)]
    for label, rate, full, beside in zip(labels, got, alone, unmanaged):
        bench.result.add(within(Row(f"{label}, {HALF} %: steps a second", "%", 100 * rate / full,
                                    HALF, 100 * beside / full), bench.bar(POINTS, 15)))
    for label, answer, before in zip(labels, answers, alone_answers):
        bench.result.add(Row(f"{label}: mean step", "ms", answer["step_ms_mean"],
                             native=before["step_ms_mean"]))
        longest = Row(f"{label}: longest step in {bench.settings.seconds:g} s", "ms",
                      answer["step_ms_max"], native=before["step_ms_max"])
        bench.result.add(at_most(longest, round(bench.bar(LONGEST, 300) * before["step_ms_max"])))
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", f"Over {GPUS} GPUs at {HALF} % of both, beside a training on each: step "
        "rate against native alone", bench.result.rows, "%"))
