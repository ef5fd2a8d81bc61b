"""The three ways to run a load in the benches of --sharing space: natively, under MPS without allot, and with allot."""

import contextlib
from dataclasses import dataclass

from harness.load import Kernel, Load
from harness.mps import plain_mps, threads

NATIVE, MPS, SPACE = "native", "plain MPS", "--sharing space"
MEMORY = ["--memory", "4GiB"]
SHARING = ["--sharing", "space"]
NATIVE_S = 7            # about how long it takes to calibrate a kernel and to measure a process alone
START_S = 2.4           # until a client is ready, and 0.2 more for each: its server may have to start first


@dataclass(frozen=True)
class Member:
    """A member of a group. limit_pct: the most that it may use; None: its guarantee. Under plain MPS it has `fixed_pct` of the
    SMs or, if that is None, its guarantee; 100 means all SMs."""
    name: str
    kernel: Kernel
    cores_pct: float
    limit_pct: float = None
    fixed_pct: float = None
    more: tuple = ()        # options of allot-load
    mode: tuple = ()        # options of allot-load that change a kernel's cost
    options: tuple = ()     # options of allot run
    environment: dict = None    # environment of a client of plain MPS

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
    """Whether tenants can use --sharing space here; if not, the result gets the reason."""
    refused = bench.machine.refuses(*SHARING)
    if refused:
        bench.result.skip(what, refused)
    return not refused


def measure(bench, way, members, seconds, **more):
    """The members' Outcomes, relative to a native process alone, which was measured before."""
    for member in members:
        bench.loads.calibrate(member.kernel)
        bench.loads.native_rate(member.kernel, member.mode)
    loads = [member.load(way) for member in members]
    with plain_mps(bench.machine) if way == MPS else contextlib.nullcontext():
        return bench.loads.run(loads, seconds, setup_s=START_S + 0.2 * len(loads), **more)


def run_seconds(settings, seconds):
    """About how long measure() takes."""
    return START_S + settings.settle_s + seconds + 1


def window_s(settings):
    """Length of a window: shorter than usual, because these benches run each load two to four times."""
    return 0.3 * settings.seconds


def over_sum(works):
    """Shares in percent: the work of each, relative to the same program alone, divided by the sum of all these."""
    return [100 * work / sum(works) for work in works]
