"""The benches, in the order in which they run. Each takes a Bench and adds rows to its result."""

from dataclasses import dataclass
from typing import Callable

from . import calls, launch, shares, training


@dataclass(frozen=True)
class Case:
    name: str
    run: Callable
    about: str
    seconds: Callable       # of (Bench settings): about how long it takes
    is_long: bool = False   # left out of --quick
    trains: bool = False    # needs PyTorch and a GPU that computes


CASES = [
    Case("cap", shares.cap, "one tenant alone, capped at 20, 50, 80 %",
         lambda s: 10 + (2 if s.quick else 6) * (s.seconds + 3.5)),
    Case("three", shares.three, "45 / 30 / 15 % together, hard caps",
         lambda s: 2 * (s.seconds + 3.8)),
    Case("fifty_beside_four", shares.fifty_beside_four, "50 % beside four at 10 %",
         lambda s: s.seconds + s.native_seconds + 8),
    Case("five_equal", shares.five_equal, "five equal tenants: sum of work against one alone",
         lambda s: s.seconds + s.native_seconds + 8),
    Case("launch_cost", launch.launch_cost, "cost of a launch, alone and uncapped",
         lambda s: s.launch_rounds * 2.6),
    Case("calls", calls.calls, "cost of look-ups, allocations and contexts, by turns",
         lambda s: 20 if s.quick else 60),
    Case("start", calls.start, "start of a process that uses no GPU, by turns",
         lambda s: 3 if s.quick else 8),
    Case("resnet_overhead", training.resnet_overhead,
         "ResNet18 with a quota that does not bind",
         lambda s: 2 * s.training_rounds * (s.training_seconds + 6), trains=True),
    Case("resnet_half", training.resnet_half, "ResNet18 at half of the GPU",
         lambda s: s.training_seconds + 6, trains=True),
    Case("oom", training.oom, "PyTorch over its memory quota", lambda s: 30, trains=True),
    Case("mixed", shares.mixed, "kernels of 20 us to 50 ms, equal shares",
         lambda s: 5 * 6 + s.seconds + 5, is_long=True),
    Case("seed_models", training.seed_models, "ResNet18, a transformer and a GRU at 45 / 30 / 15 %",
         lambda s: 3 * (s.training_seconds + 8) + s.seconds + 30, is_long=True,
         trains=True),
]
