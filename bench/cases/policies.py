"""The same cases under each policy, in one run: a cap alone, 45 / 30 / 15 % together, a step."""

from harness import plot, stats
from harness.load import Load
from harness.result import Row

from . import response
from .shares import LARGE, capped
from .under_policies import under_each

DEFAULT = ("lease", "feedback", "token")      # of --policies
CAPS = (20, 50, 80)
THREE = (45, 30, 15)


def seconds_of(settings):
    each = (1 if settings.quick else len(CAPS)) * (settings.cell_seconds + 4) + \
        settings.cell_seconds + 4.5 + response.step_seconds(settings) + 5
    return len(settings.policies or DEFAULT) * each + 2 * (settings.native_seconds + 4.5)


def measure(bench, policy, native):
    errors = []
    seconds = bench.settings.cell_seconds
    for pct in (50,) if bench.settings.quick else CAPS:
        outcome, = bench.loads.run([capped("capped", LARGE, pct)], seconds)
        bench.result.add(Row(f"{policy}: alone, {pct} %", "%", outcome.share_pct, pct))
        bench.result.add(Row(f"{policy}: alone, {pct} %, 1 s windows, std dev", "points",
                             outcome.deviation_pct()))
        errors.append(abs(outcome.share_pct - pct))
    outcomes = bench.loads.run([capped(f"t{pct}", LARGE, pct) for pct in THREE], seconds)
    for pct, outcome, unmanaged in zip(THREE, outcomes, native):
        bench.result.add(Row(f"{policy}: three, {pct} %", "%", outcome.share_pct, pct,
                             unmanaged.share_pct))
        errors.append(abs(outcome.share_pct - pct))
    near = [stats.within_pct(o.windows(0.1), pct, 6) for pct, o in zip(THREE, outcomes)]
    bench.result.add(Row(f"{policy}: three, 100 ms windows within 6, the worst", "%", min(near)))
    bench.result.add(Row(f"{policy}: mean error", "points", stats.mean(errors)))
    return response.set_step(bench, f"{policy}: ")


def policies(bench):
    responses = {}
    native = bench.loads.run([Load(f"n{pct}", LARGE) for pct in THREE],
                             bench.settings.native_seconds)

    def note(policy):
        responses[policy] = measure(bench, policy, native)

    under_each(bench, bench.settings.policies or DEFAULT, note)
    if responses:
        bench.result.charts.append(lambda stem: plot.lines(
            stem + ".svg", "20 to 60 % by allot set, under each policy: means of 200 ms",
            responses, {}, "% of the GPU", "10 ms steps"))
