"""Two NCCL ranks, whose kernels wait for each other across two GPUs, beside a saturating tenant on each GPU.
First both ranks are in one tenant, then in one tenant each."""

import importlib.util
import os
import socket
import sys

from harness.load import Loads

from .progress import FAIR, KERNEL

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(os.path.dirname(HERE), "nccl.py")
LIMIT_S = 300


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def command(*more):
    return [sys.executable, PROGRAM, "--port", str(free_port()), *more]


def run(tally, name, jobs):
    states = [job.wait(LIMIT_S) for job in jobs]
    said = [line for job in jobs for line in job.text() if line.startswith("nccl:")]
    tally.verdict(states == [0] * len(jobs), name,
                  "; ".join(said) if said else f"status {states}{jobs[0].tail()}")


def check(machine, tally, options):
    names = ["NCCL, two ranks in one tenant", "NCCL, two ranks in two tenants"]
    why = ("one GPU" if machine.nvml.count() < 2 else
           "no PyTorch here" if not importlib.util.find_spec("torch") else
           "the simulated GPU computes nothing" if machine.sim else None)
    if why:
        for name in names:
            tally.skip(name, why)
        return
    loads = Loads(machine)
    load = loads.command(KERNEL, "--seconds", "100000")
    saturators = [machine.tenant(f"saturator{gpu}", load, [*FAIR, "--cores", "40", "--gpu",
                                                           str(gpu)]) for gpu in (0, 1)]
    for job in saturators:
        job.wait_line(0, 60)
    options_of_rank = ["--memory", "16GiB", "--cores", "25", "--cores-limit", "100"]
    run(tally, names[0], [machine.tenant("ranks", command("--both"),
                                         [*options_of_rank, "--gpu", "0,1"])])
    line = command()
    run(tally, names[1], [machine.tenant(f"rank{rank}", line + ["--rank", str(rank)],
                                         [*options_of_rank, "--gpu", str(rank)])
                          for rank in (0, 1)])
    for job in saturators:
        job.stop()
