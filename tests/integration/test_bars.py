"""The project's bars for shares of charged time, with real processes on the simulated GPU in wall time. Bounds are wide,
because processes, daemon and simulated GPU share the few cores of the test machine. tests/unit/policy/lease/test_bars.c runs
the same cases, and other policies, in virtual time with the exact bars. Further cases: test_policies.py, test_priority.py,
test_elastic.py."""

import time
from dataclasses import dataclass

import pytest

pytestmark = pytest.mark.alone  # shares

SECONDS = 4
FILLING = 264   # blocks of a kernel that leaves no room for kernels of other streams
SETUP_S = 2.5   # time until the last of several tenants is ready, so that all begin at the same time


@dataclass
class Tenant:
    cores: float
    limit: float = None     # None: a cap at the guarantee
    kernel_us: int = 1000
    more: tuple = ()


@dataclass
class Bar:
    name: str
    tenants: list
    within: float = None    # the most points between the share and the requested cores
    sum_pct: float = None   # the least sum of shares; one tenant alone, without a cap, gets 100
    jain: float = None      # the least fairness index
    apart: float = None     # the most points between the largest and the smallest share

    def __str__(self):
        return self.name


def equal(count, kernel_us):
    return [Tenant(100 / count, 100, kernel_us) for _ in range(count)]


BARS = [
    Bar("10", [Tenant(10)], within=2),
    Bar("90", [Tenant(90)], within=4),
    Bar("50, 5 ms kernels", [Tenant(50, kernel_us=5000)], within=3),
    Bar("30, 20 ms kernels", [Tenant(30, kernel_us=20000)], within=4),
    Bar("30, graphs", [Tenant(30, more=("--graph",))], within=3),
    Bar("30, cooperative", [Tenant(30, more=("--cooperative",))], within=3),
    Bar("45 / 30 / 15", [Tenant(45), Tenant(30), Tenant(15)], within=4),
    Bar("50 beside 4", [Tenant(50), *[Tenant(12.5) for _ in range(4)]], within=6),
    Bar("five equal", equal(5, 1000), sum_pct=85, jain=0.98),
    Bar("5 ms beside 50 us", [Tenant(50, 100, 5000), Tenant(50, 100, 50)], sum_pct=85, apart=12),
    Bar("4 processes x 4 streams beside one",
        [Tenant(50, 100, more=("--processes", 4, "--streams", 4, "--blocks", FILLING)), Tenant(50, 100)], apart=12),
]


def start(machine, tenant, begin):
    together = () if begin is None else ("--start-at", begin)
    limit = () if tenant.limit is None else ("--cores-limit", tenant.limit)
    return machine.start_load("--memory", "8GiB", "--cores", tenant.cores, *limit, load=(
        "--kernel-us", tenant.kernel_us, "--seconds", SECONDS, *together, *tenant.more))


@pytest.mark.parametrize("bar", BARS, ids=str)
def test_bar(machine, bar):
    begin = time.time() + SETUP_S if len(bar.tenants) > 1 else None
    tenants = [start(machine, tenant, begin) for tenant in bar.tenants]
    shares = [machine.end_load(tenant)[0] for tenant in tenants]
    print(bar.name, *shares)
    assert all(share.is_sound() for share in shares), shares
    got = [share.charged_pct for share in shares]
    if bar.within is not None:
        for tenant, part in zip(bar.tenants, got):
            assert abs(part - tenant.cores) <= bar.within, got
    if bar.sum_pct is not None:
        assert sum(got) >= bar.sum_pct, got
    if bar.jain is not None:
        assert sum(got) ** 2 / (len(got) * sum(part ** 2 for part in got)) >= bar.jain, got
    if bar.apart is not None:
        assert max(got) - min(got) <= bar.apart, got
