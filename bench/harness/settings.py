"""How long each part of a bench takes, and which parts are chosen."""

from dataclasses import dataclass

from .build import torch_load
from .load import SETTLE_S

# Length of a window, and that of --quick.
SECONDS_S, QUICK_S = 20.0, 5.0


@dataclass
class Settings:
    seconds: float
    settle_s: float
    quick: bool
    torch_load: str
    native_seconds: float = 6.0
    rival_seconds: float = 0.0  # for measuring --rival-library once
    other_seconds: float = 10.0 # for measuring one way without allot once: natively, or by plain MPS
    launch_rounds: int = 10     # of native and tenant each
    launch_bursts: int = 300
    cell_seconds: float = 10.0  # where the bar is over 10 s
    part: tuple = (1, 1)        # of the cells of a bench that has many: number, of so many
    end: float = None           # on the monotonic clock: no cell begins that would end later
    policies: tuple = ()        # of --policies; none: each bench's own default
    training_seconds: float = 8.0
    training_rounds: int = 3    # of native and tenant each
    torch_options: tuple = ()   # further ones of torch_load
    llm_server: str = None
    scenes: tuple = ()          # of the bench llm
    ways: tuple = ()
    runs: int = 3
    seed: int = 0               # of random arrivals

    @classmethod
    def of(cls, quick):
        """The settings of a run without options, or of one with --quick."""
        settings = cls(QUICK_S if quick else SECONDS_S, SETTLE_S, quick, torch_load())
        if quick:
            settings.hurry()
        return settings

    def hurry(self):
        self.native_seconds = 2.0
        self.other_seconds = 6.0
        self.cell_seconds = 3.0
        self.launch_rounds = 4
        self.training_seconds = 5.0
        self.training_rounds = 1
        self.runs = 1

    def part_of(self, cells):
        """Every so-manyth cell, so that a part has a bit of all."""
        number, of = self.part
        return list(cells)[number - 1::of]
