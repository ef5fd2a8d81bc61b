"""Lending with --sharing space on the committed trace of busy and idle phases. Three tenants have guarantees of 45, 30 and 15 %
and may use what the others leave; they are compared with plain MPS with the same percentages, which never lends."""

from harness import stats
from harness.result import Row, at_least

from .bursty import KERNELS, TRACE
from .shares import add_bars
from .space_shares import SHARES
from .space_ways import MPS, NATIVE_S, SPACE, Member, is_offered, measure, run_seconds

GAIN_PCT = 25


def length_s(settings):
    return 6.0 if settings.quick else 20.0


def seconds_of(settings):
    return 3 * NATIVE_S + 2 * run_seconds(settings, length_s(settings))


def measure_way(bench, way):
    """([work of each tenant in percent], [ms until a tenant's work begins again, for each phase])"""
    members = [Member(f"burst{pct}", kernel, pct, 100, more=("--trace", TRACE, "--trace-row", str(i)))
               for i, (kernel, pct) in enumerate(zip(KERNELS, SHARES))]
    outcomes = measure(bench, way, members, length_s(bench.settings))
    firsts = [phase["first_ms"] - kernel.cost_us / 1e3 for outcome, kernel in zip(outcomes, KERNELS)
              for phase in outcome.last["phases"] if "first_ms" in phase]
    return [outcome.share_pct for outcome in outcomes], firsts


def space_bursty(bench):
    if not is_offered(bench, "bursty"):
        return
    (fixed, mps_firsts), (lent, firsts) = (measure_way(bench, way) for way in (MPS, SPACE))
    for pct, got, before in zip(SHARES, lent, fixed):
        bench.result.add(Row(f"bursty, {pct} %: work done", "%", got, mps=before))
    bench.result.add(Row("bursty, sum of work", "%", sum(lent), mps=sum(fixed)))
    bench.result.add(at_least(Row("bursty, lent over plain MPS's caps: work", "% more",
                                  100 * (sum(lent) / sum(fixed) - 1)), bench.bar(GAIN_PCT, 10)))
    bench.result.add(Row(f"bursty, work begins again, 99th pct of {len(firsts)}", "ms", stats.percentile(firsts, 99),
                         mps=stats.percentile(mps_firsts, 99)))
    add_bars(bench, "Bursty mix of three at 45 / 30 / 15 %: lent in space, and fixed parts")
