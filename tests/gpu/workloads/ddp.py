"""DistributedDataParallel over NCCL on two GPUs, a process each. NVLink multicast stays off: on
some hosts a program that uses it puts the GPUs out of service."""

import os
import socket

os.environ.update(NCCL_NVLS_ENABLE="0", TORCH_SYMM_MEM_DISABLE_MULTICAST="1",
                  NVSHMEM_DISABLE_NVLS="1")

import torch                                    # noqa: E402
import torch.distributed as dist                # noqa: E402
import torch.multiprocessing as processes       # noqa: E402
from torch import nn                            # noqa: E402
from torch.nn.parallel import DistributedDataParallel   # noqa: E402

import on_torch                                 # noqa: E402
import protocol                                 # noqa: E402

RANKS = 2
STEPS = 20


def rank_main(rank, port, quota, pipe):
    """Says when it holds, waits to be let go on, then sends its results' bytes."""
    torch.cuda.set_device(rank)
    on_torch.start()
    dist.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{port}", rank=rank,
                            world_size=RANKS, device_id=torch.device("cuda", rank))
    model = DistributedDataParallel(nn.Sequential(
        nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(),
        nn.Linear(2048, 100)).to("cuda"), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    inputs = on_torch.random(512, 512, seed=rank)
    targets = on_torch.classes(512, 100, seed=rank)
    first = on_torch.train(model, optimizer, inputs, targets, STEPS)
    on_torch.settle()
    pipe.send("held")
    pipe.recv()
    on_torch.ask_too_much(quota)
    dist.barrier()
    second = on_torch.train(model, optimizer, inputs, targets, STEPS)
    on_torch.settle()
    pipe.send(b"".join(part.tobytes() for part in
                       on_torch.bytes_of(first, second, *model.parameters())))
    dist.destroy_process_group()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    options = protocol.arguments(__doc__)
    if torch.cuda.device_count() < RANKS:
        protocol.skip("one GPU")
    spawn = processes.get_context("spawn")
    port, ranks, pipes = free_port(), [], []
    for rank in range(RANKS):
        ours, theirs = spawn.Pipe()
        ranks.append(spawn.Process(target=rank_main, args=(rank, port, options.quota, theirs)))
        ranks[-1].start()
        theirs.close()          # so that a rank's death ends the wait for it
        pipes.append(ours)
    for pipe in pipes:
        pipe.recv()
    protocol.hold(pids=[rank.pid for rank in ranks])
    for pipe in pipes:
        pipe.send("on")
    results = [pipe.recv() for pipe in pipes]
    for rank in ranks:
        rank.join()
    if any(rank.exitcode != 0 for rank in ranks):
        raise SystemExit(f"ranks ended with {[rank.exitcode for rank in ranks]}")
    protocol.end(*results)


if __name__ == "__main__":
    main()
