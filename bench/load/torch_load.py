#!/usr/bin/env python3
"""PyTorch trainings for the share and memory experiments.

Data and weights are synthetic, so nothing is downloaded. A step is forward, loss, backward and optimizer, and ends with a
synchronization, so that its time is that of the GPU's work and not of queueing it.

With --oom-retry the first batch should be far too large for the tenant's quota: each torch.OutOfMemoryError halves it, until
the training fits. This shows that a program can recover from the refusal.

With --serve the process keeps running and obeys commands (trainings/serve.py).
"""

import argparse
import json
import os
import sys
import time

import torch

from trainings import bypass
from trainings.models import MODELS
from trainings.serve import Server, serve
from trainings.steps import take_steps
from trainings.training import free_memory, try_training

# Every model needs at least 30 GiB with this batch. It is below 65,535, the limit of some attention kernels, beyond which
# they fail with an error that is not about memory.
OOM_BATCH = 8192


def report(options, event):
    """Prints an event as a line, as JSON or as text."""
    if options.json:
        print(json.dumps(event), flush=True)
    else:
        print("  ".join(f"{key} {value}" for key, value in event.items()), flush=True)


def find_batch(options, batch, device):
    """Returns a training that fits, and its batch. Without --oom-retry the program ends at the first refusal."""
    while True:
        begin = time.monotonic()
        training, error = try_training(options.model, batch, device, options.warmup)
        if options.oom_retry or error is not None:
            report(options, {"try_batch": batch, "fits": error is None,
                             "took_s": round(time.monotonic() - begin, 3), "error": error})
        if training is not None:
            return training, batch
        free_memory(device)
        if not options.oom_retry or batch == 1:
            sys.exit(1)
        batch //= 2


def measure(options, batch, device):
    """Trains with this batch, or the first smaller one that fits, and reports it."""
    training, batch = find_batch(options, batch, device)
    taken = take_steps(training, lambda _, elapsed_s: elapsed_s < options.seconds)
    report(options, {"model": options.model, "batch": batch, **taken.summary(),
                     **training.memory()})


def parse_batches(text):
    batches = [int(part) for part in text.split(",")]
    if min(batches) < 1:
        raise argparse.ArgumentTypeError(f"'{text}': at least 1")
    return batches


def parse_processors(text):
    """The processors of N[:K], as a list."""
    count, _, behind = text.partition(":")
    if not (count.isdecimal() and int(count) > 0 and (behind or "0").isdecimal()):
        raise argparse.ArgumentTypeError(f"'{text}': not N or N:K, such as 4 or 4:2")
    own = sorted(os.sched_getaffinity(0))
    own = own[:max(0, len(own) - int(behind or 0) * int(count))]
    if len(own) < int(count):
        raise argparse.ArgumentTypeError(f"'{text}': this process may use {len(os.sched_getaffinity(0))} processors, too few")
    return own[-int(count):]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=sorted(MODELS), default="resnet18")
    parser.add_argument("--batch", type=parse_batches, metavar="N[,N..]",
                        help="several: one training after the other; default: " +
                        ", ".join(f"{model.default_batch} for {name}"
                                  for name, model in MODELS.items()) +
                        f"; with --oom-retry {OOM_BATCH}")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--warmup", type=int, default=10, help="steps before timing")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--oom-retry", action="store_true",
                        help="halve the batch at each torch.OutOfMemoryError")
    parser.add_argument("--serve", action="store_true",
                        help="obey commands on the input, one a line (trainings/serve.py)")
    parser.add_argument("--ranks", type=int, default=1, metavar="N",
                        help="with --serve: train on N GPUs, with a process for each (%(default)s)")
    parser.add_argument("--device", default="cuda", help="such as cuda:1; cpu is only for trying the program, with a "
                        "tiny batch (%(default)s)")
    parser.add_argument("--processors", type=parse_processors, metavar="N[:K]", help="run on the last N processors that "
                        "the process may use, not counting the last K*N; on a GPU, the launching thread and that of the "
                        "backward pass run on the last of the N. Programs that are compared alternately need the same "
                        "option")
    options = parser.parse_args()
    if options.batch is None:
        options.batch = [OOM_BATCH if options.oom_retry else MODELS[options.model].default_batch]
    if options.ranks < 1 or (options.ranks > 1 and not options.serve):
        parser.error(f"--ranks {options.ranks}: at least 1, and only with --serve")
    return options


def find_device(options):
    """The device to train on. A GPU with an index becomes the current device."""
    device = torch.device(options.device)
    if device.type == "cuda":
        if torch.cuda.device_count() < max(options.ranks, (device.index or 0) + 1):
            sys.exit(f"torch_load: PyTorch sees {torch.cuda.device_count()} CUDA devices, too few")
        if device.index is not None:
            torch.cuda.set_device(device)
        # Autotuning would make the warm-up, and the memory, depend on the work of other tenants at the time.
        torch.backends.cudnn.benchmark = False
    return device


def serve_input(options, device):
    if options.ranks > 1:
        from trainings.ranks import Ranks   # imported late, because not every PyTorch has torch.distributed

        obey = Ranks(options.ranks, device.type, options.warmup).obey
    else:
        obey = Server(lambda name, batch: try_training(name, batch, device, options.warmup),
                      lambda: free_memory(device), bypass=bypass.of_this_process()).obey
    serve(obey, sys.stdin, sys.stdout)


def start_device(options):
    """The device, with a context. Threads that the driver and the library start with the context may use all of the chosen
    processors. This thread, and those that it starts later, use the last one, so that they share caches and every step runs on
    the same processor."""
    if not options.processors:
        return find_device(options)
    os.sched_setaffinity(0, options.processors)
    device = find_device(options)
    if device.type == "cuda":
        torch.zeros(1, device=device)
        os.sched_setaffinity(0, options.processors[-1:])
    return device


def main():
    options = parse_arguments()
    device = start_device(options)
    torch.manual_seed(1)
    if options.serve:
        serve_input(options, device)
        return
    for batch in options.batch:
        measure(options, batch, device)
        free_memory(device)


if __name__ == "__main__":
    main()
