"""A training step in PyTorch: forward, loss, backward, optimizer, and the wait for its end."""

import gc
import time

import torch
from torch import nn

from .models import MODELS, VOCABULARY

CPU_BATCH = 2           # a CPU is only for trying the program

# PyTorch 2.5 introduced the first name.
OutOfMemory = getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)


class EventTimer:
    """GPU time from the first kernel of a step to the end of its last one."""

    def __init__(self):
        self.first = torch.cuda.Event(enable_timing=True)
        self.last = torch.cuda.Event(enable_timing=True)

    def begin(self):
        self.first.record()

    def end(self):
        self.last.record()

    def ms(self):
        """Must be called after the wait for the step."""
        return self.first.elapsed_time(self.last)


class CpuTimer:
    """The same on a CPU, where the launch computes synchronously."""

    def begin(self):
        self.first = time.perf_counter()

    def end(self):
        self.last = time.perf_counter()

    def ms(self):
        return (self.last - self.first) * 1e3


class Training:
    """A model, its optimizer and one batch, which every step uses. wrap: a function that wraps the model on its device, such as
    DistributedDataParallel."""

    def __init__(self, name, batch, device, wrap=None):
        model = MODELS[name]
        self.name = name
        self.batch = batch
        self.device = device
        self.model = model.make().to(device).train()
        if wrap:
            self.model = wrap(self.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)
        self.loss = nn.CrossEntropyLoss()
        held = batch if device.type == "cuda" else min(batch, CPU_BATCH)
        self.input = model.make_input(held, device)
        self.target = torch.randint(VOCABULARY, (held,), device=device)
        self.size = f"{'x'.join(map(str, self.input.shape[1:]))} {model.unit}".strip()

    def launch(self):
        """Queues a step."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(self.model(self.input), self.target)
        loss.backward()
        self.optimizer.step()

    def wait(self):
        """Waits for all queued work."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def timer(self):
        return EventTimer() if self.device.type == "cuda" else CpuTimer()

    def memory(self):
        """The GPU's memory in bytes, for a report; {} on a CPU."""
        if self.device.type != "cuda":
            return {}
        free_bytes, total_bytes = torch.cuda.mem_get_info(self.device)
        return {"peak_reserved_bytes": torch.cuda.max_memory_reserved(self.device),
                "free_bytes": free_bytes, "total_bytes": total_bytes}


def try_training(name, batch, device, warmup, wrap=None):
    """(a training that has done its warm-up, None), or (None, the error's text). The error itself must not leave this function,
    because its traceback keeps every tensor of the failed step alive."""
    try:
        training = Training(name, batch, device, wrap)
        for _ in range(max(warmup, 1)):
            training.launch()
            training.wait()
        return training, None
    except OutOfMemory as error:
        return None, str(error).splitlines()[0]


def free_memory(device):
    gc.collect()
    if device.type == "cuda" and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
