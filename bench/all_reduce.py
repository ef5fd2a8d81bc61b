#!/usr/bin/env python3
"""An all-reduce over all GPUs that this process sees, by NCCL, a process each. Prints a line of JSON:
{"gpus": 4, "mib": 256, "bus_gib_s": 310.2}, what each GPU sends a second, as NCCL's own tests count it."""

import json
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

MIB = 256
WARM_UP, ROUNDS = 5, 40


def work(rank, count, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank),
                      WORLD_SIZE=str(count))
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=count)
    data = torch.ones(MIB << 18, device=f"cuda:{rank}")     # of four bytes
    for _ in range(WARM_UP):
        dist.all_reduce(data)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(ROUNDS):
        dist.all_reduce(data)
    torch.cuda.synchronize()
    seconds = (time.perf_counter() - begin) / ROUNDS
    if rank == 0:
        bus = 2 * (count - 1) / count * MIB / 1024 / seconds
        print(json.dumps({"gpus": count, "mib": MIB, "bus_gib_s": bus}), flush=True)
    dist.destroy_process_group()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    gpus = torch.cuda.device_count()
    mp.spawn(work, args=(gpus, free_port()), nprocs=gpus)
