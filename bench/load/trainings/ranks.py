"""One training on several GPUs: DistributedDataParallel with a process for each rank. Rank 0 reads the input and sends each
command to the others; all obey it at the same time (serve.py)."""

import multiprocessing
import os
import socket

import torch
import torch.distributed as distributed
from torch.nn.parallel import DistributedDataParallel

from .serve import Server, merge
from .steps import end_of_ranks
from .training import free_memory, try_training

ANSWER_S = 1200         # longer than any window

# NVLink multicast is off, because on some hosts a program that uses it makes the GPUs unusable.
QUIET = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
         "NVSHMEM_DISABLE_NVLS": "1"}


def join(rank, ranks, port, device_type, warmup, stop):
    """Makes this process a rank; returns the server that obeys commands for it."""
    device = torch.device(device_type, rank) if device_type == "cuda" else torch.device("cpu")
    more = {}
    if device.type == "cuda":
        torch.cuda.set_device(device)
        more["device_id"] = device
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo",
                                   init_method=f"tcp://127.0.0.1:{port}", rank=rank,
                                   world_size=ranks, **more)

    def wrap(model):
        return DistributedDataParallel(
            model, device_ids=[rank] if device.type == "cuda" else None)

    def make(name, batch):
        torch.manual_seed(1)
        return try_training(name, batch, device, warmup, wrap)
    return Server(make, lambda: free_memory(device), end_of_ranks(rank, stop))


def follow(pipe, stop, rank, *about):
    """Runs a rank other than 0 until rank 0 has ended."""
    server = join(rank, *about, stop)
    try:
        while True:
            pipe.send(server.obey(pipe.recv()))
    except (EOFError, BrokenPipeError):
        pass


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Ranks:
    """Rank 0, and the processes of the other ranks."""

    def __init__(self, ranks, device_type, warmup):
        os.environ.update(QUIET)
        spawn = multiprocessing.get_context("spawn")
        about = (ranks, free_port(), device_type, warmup)
        self.stop = spawn.Value("q", 0)
        self.pipes = []
        for rank in range(1, ranks):
            ours, theirs = spawn.Pipe()
            spawn.Process(target=follow, args=(theirs, self.stop, rank, *about),
                          daemon=True).start()
            theirs.close()          # so that a rank's death ends the wait for it
            self.pipes.append(ours)
        self.server = join(0, *about, self.stop)

    def obey(self, line):
        self.stop.value = 0
        for pipe in self.pipes:
            pipe.send(line)
        answers = [self.server.obey(line)]
        for pipe in self.pipes:
            if not pipe.poll(ANSWER_S):
                return {"error": "a rank does not answer"}
            answers.append(pipe.recv())
        return merge(answers)
