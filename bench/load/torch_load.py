#!/usr/bin/env python3
"""PyTorch trainings for the share and memory experiments.

Synthetic data and random weights: nothing is fetched. A step is forward, loss,
backward and optimizer, and ends with a synchronization, so that its time is the
GPU's and not the queue's.

With --oom-retry the first batch is meant to be far too large for the tenant's
quota: each torch.OutOfMemoryError halves it, until training goes on. That is
how programs meet a quota, and shows that the refusal is one they recover from.
"""

import argparse
import gc
import json
import statistics
import sys
import time

import torch
from torch import nn


class Gru(nn.Module):
    """Two GRU layers over a sequence of tokens: many small kernels."""

    def __init__(self, vocabulary, width):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.gru = nn.GRU(width, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        states, _ = self.gru(self.embed(tokens))
        return self.head(states[:, -1])


class Transformer(nn.Module):
    """A small encoder that classifies sequences of tokens."""

    def __init__(self, vocabulary, width):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(width, nhead=8, dim_feedforward=4 * width,
                                           batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=4)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.head(self.encoder(self.embed(tokens)).mean(dim=1))


VOCABULARY = 1000
WIDTH = 512
SEQUENCE = 128

# Needs 30 GiB and more in every model, yet stays below the 65,535 that some
# attention kernels take: past it they fail with an error that is not about memory.
OOM_BATCH = 8192


def make_resnet18():
    import torchvision  # here, so that the other models need no torchvision

    return torchvision.models.resnet18(weights=None)


def make_images(batch, device):
    return torch.randn(batch, 3, 224, 224, device=device)


def make_tokens(batch, device):
    return torch.randint(VOCABULARY, (batch, SEQUENCE), device=device)


# A row a model: how to make it, how to make its input, its default batch.
MODELS = {
    "resnet18": (make_resnet18, make_images, 128),
    "transformer": (lambda: Transformer(VOCABULARY, WIDTH), make_tokens, 64),
    "gru": (lambda: Gru(VOCABULARY, WIDTH), make_tokens, 64),
}


class Training:
    """A model, its optimizer and one batch that is used again each step."""

    def __init__(self, name, batch, device):
        make_model, make_input, _ = MODELS[name]
        self.device = device
        self.model = make_model().to(device).train()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)
        self.loss = nn.CrossEntropyLoss()
        self.input = make_input(batch, device)
        self.target = torch.randint(VOCABULARY, (batch,), device=device)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(self.model(self.input), self.target)
        loss.backward()
        self.optimizer.step()
        synchronize(self.device)


def synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def free_memory(device):
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def report(options, event):
    """One line an event: JSON, or for people."""
    if options.json:
        print(json.dumps(event), flush=True)
    else:
        print("  ".join(f"{key} {value}" for key, value in event.items()), flush=True)


def try_batch(options, batch, device):
    """A training that has done its warm-up, or None and the error's text.

    The error itself must not leave this function: its traceback keeps every
    tensor of the failed step alive.
    """
    training = None
    try:
        training = Training(options.model, batch, device)
        for _ in range(max(options.warmup, 1)):
            training.step()
        return training, None
    except torch.OutOfMemoryError as error:
        return None, str(error).splitlines()[0]


def find_batch(options, batch, device):
    """Returns a training that fits, and its batch. Without --oom-retry the
    first refusal is the end."""
    while True:
        begin = time.monotonic()
        training, error = try_batch(options, batch, device)
        if options.oom_retry or error is not None:
            report(options, {"try_batch": batch, "fits": error is None,
                             "took_s": round(time.monotonic() - begin, 3), "error": error})
        if training is not None:
            return training, batch
        free_memory(device)
        if not options.oom_retry or batch == 1:
            sys.exit(1)
        batch //= 2


def train(training, seconds):
    """Steps for that long; returns each one's time in milliseconds."""
    times_ms = []
    begin = last = time.perf_counter()
    while last - begin < seconds:
        training.step()
        now = time.perf_counter()
        times_ms.append((now - last) * 1e3)
        last = now
    return times_ms, last - begin


def parse_batches(text):
    batches = [int(part) for part in text.split(",")]
    if min(batches) < 1:
        raise argparse.ArgumentTypeError(f"'{text}': at least 1")
    return batches


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=sorted(MODELS), default="resnet18")
    parser.add_argument("--batch", type=parse_batches, metavar="N[,N..]",
                        help="several: one training after the other; default: 128 for resnet18, "
                        "else 64; with --oom-retry 8192")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--warmup", type=int, default=10, help="steps before timing")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--oom-retry", action="store_true",
                        help="halve the batch at each torch.OutOfMemoryError")
    parser.add_argument("--start-on-input", action="store_true",
                        help="say 'ready' after the warm-up and wait for a line of input")
    parser.add_argument("--device", default="cuda", help="cpu only tries the program out")
    options = parser.parse_args()
    if options.batch is None:
        options.batch = [OOM_BATCH if options.oom_retry else MODELS[options.model][2]]
    return options


def measure(options, batch, device):
    """Trains with this batch, or the first smaller one that fits, and reports it."""
    training, batch = find_batch(options, batch, device)
    if options.start_on_input:
        report(options, {"ready": True})
        sys.stdin.readline()
    times_ms, elapsed_s = train(training, options.seconds)
    event = {
        "model": options.model,
        "batch": batch,
        "steps": len(times_ms),
        "elapsed_s": round(elapsed_s, 3),
        "step_ms_median": round(statistics.median(times_ms), 3),
        "step_ms_mean": round(statistics.fmean(times_ms), 3),
        "step_ms_max": round(max(times_ms), 3),
    }
    if device.type == "cuda":
        free_bytes, total_bytes = torch.cuda.mem_get_info(device)
        event["peak_reserved_bytes"] = torch.cuda.max_memory_reserved(device)
        event["free_bytes"] = free_bytes
        event["total_bytes"] = total_bytes
    report(options, event)


def main():
    options = parse_arguments()
    device = torch.device(options.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        sys.exit("torch_load: no CUDA device is visible to PyTorch")
    torch.manual_seed(1)
    if device.type == "cuda":
        # fp32 as PyTorch ships it; autotuning would make warm-up, and memory,
        # depend on what the neighbours do meanwhile.
        torch.backends.cudnn.benchmark = False

    for batch in options.batch:
        measure(options, batch, device)
        free_memory(device)


if __name__ == "__main__":
    main()
