#!/usr/bin/env python3
"""Two NCCL ranks that sum a vector again and again: `--both` starts them from one process, or each is
started with its --rank. Prints how long a sum took, and ends with status 0 if all were right.

NVLink multicast stays off: on some hosts a program that uses it puts the GPUs out of service.
"""

import argparse
import os
import subprocess
import sys
import time

ELEMENTS = 1 << 20      # 4 MiB


def run_rank(options):
    import torch
    import torch.distributed as dist

    device = torch.device("cuda", options.device)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{options.port}",
                            rank=options.rank, world_size=2, device_id=device)
    times_ms = []
    for rep in range(options.reps):
        values = torch.full((ELEMENTS,), float(options.rank + rep), device=device)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        dist.all_reduce(values)
        torch.cuda.synchronize()
        times_ms.append((time.perf_counter() - begin) * 1e3)
        if values[0].item() != 2.0 * rep + 1 or values[-1].item() != 2.0 * rep + 1:
            sys.exit(f"nccl: rank {options.rank}: repetition {rep}: wrong sum")
    dist.destroy_process_group()
    times_ms.sort()
    print(f"nccl: rank {options.rank}: {options.reps} reps, ms min {times_ms[0]:.2f} median "
          f"{times_ms[len(times_ms) // 2]:.2f} max {times_ms[-1]:.2f}, ok", flush=True)


def run_both(options):
    ranks = [subprocess.Popen([sys.executable, os.path.abspath(__file__), "--rank", str(rank),
                               "--device", str(rank), "--port", str(options.port), "--reps",
                               str(options.reps)]) for rank in (0, 1)]
    sys.exit(max(abs(rank.wait()) for rank in ranks))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--both", action="store_true")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--device", type=int, default=0, help="among those visible")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--reps", type=int, default=200)
    options = parser.parse_args()
    os.environ["NCCL_NVLS_ENABLE"] = "0"
    os.environ["TORCH_SYMM_MEM_DISABLE_MULTICAST"] = "1"
    os.environ["NVSHMEM_DISABLE_NVLS"] = "1"
    if options.both:
        run_both(options)
    run_rank(options)


if __name__ == "__main__":
    main()
