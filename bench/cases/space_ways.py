"""The ways in which the same load is measured for --sharing space: natively, under MPS without allot, and by allot."""

import contextlib
from dataclasses import dataclass

from harness.load import Kernel, Load
from harness.mps import plain_mps, threads

NATIVE, MPS, SPACE = "native", "plain MPS", "--sharing space"
MEMORY = ["--memory", "4GiB"]
SHARING = ["--sharing", "space"]
NATIVE_S = 7            # about: to calibrate a kernel, and to measure what one alone does
START_S = 2.4           # until a client is ready, and 0.2 more for each: its server may have to start first


@dataclass(frozen=True)
class Member:
    """Of a group. limit_pct: None: no more than its guarantee. Under plain MPS it has `fixed_pct` of the SMs, or its
    guarantee; 100: all."""
    name: str
    kernel: Kernel
    cores_pct: float
    limit_pct: float = None
    fixed_pct: float = None
    more: tuple = ()        # options of allot-load
    mode: tuple = ()        # those of them that change what a kernel costs
    options: tuple = ()     # of allot run
    environment: dict = None    # of a client of plain MPS

    def load(self, way):
        if way == NATIVE:
            return Load(f"native-{self.name}", self.kernel, None, self.more, self.mode)
        if way == MPS:
            fixed = {**threads(self.fixed_pct or self.cores_pct), **(self.environment or {})}
            return Load(f"mps-{self.name}", self.kernel, None, self.more, self.mode, fixed)
        limit = self.limit_pct or self.cores_pct
        options = [*MEMORY, *SHARING, "--cores", f"{self.cores_pct:g}", "--cores-limit", f"{limit:g}", *self.options]
        return Load(self.name, self.kernel, options, self.more, self.mode)


def is_offered(bench, what):
    """Whether tenants can share by space here; notes why not."""
    refused = bench.machine.refuses(*SHARING)
    if refused:
        bench.result.skip(what, refused)
    return not refused


def measure(bench, way, members, seconds, **more):
    """The members' Outcomes. What one alone does was measured natively before."""
    for member in members:
        bench.loads.calibrate(member.kernel)
        bench.loads.native_rate(member.kernel, member.mode)
    loads = [member.load(way) for member in members]
    with plain_mps(bench.machine) if way == MPS else contextlib.nullcontext():
        return bench.loads.run(loads, seconds, setup_s=START_S + 0.2 * len(loads), **more)


def run_seconds(settings, seconds):
    """How long measure() takes, about."""
    return START_S + settings.settle_s + seconds + 1


def window_s(settings):
    """These benches run each load two to four times, and take less than a window for each."""
    return 0.3 * settings.seconds


def over_sum(works):
    """Shares in percent: each one's work, relative to the same program alone, over the sum of all."""
    return [100 * work / sum(works) for work in works]
