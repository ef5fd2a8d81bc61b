"""From 1 to 64 tenants with equal shares: the sum of their work, its fairness, how long a tenant waits for its turn, and the
daemon's CPU time."""

import time

from harness import plot, stats
from harness.job import Failed
from harness.load import Load
from harness.result import Row, at_least, at_most

from .daemon_cpu import IDLE_PCT, MOST_PCT, Watch
from .shares import LARGE, fair

LEAST_SUM_PCT = 95
LEAST_JAIN = 0.99
NATIVE_MOST = 16        # native runs need no more contexts than this
ROUNDS = 40             # in which each tenant has a turn: with fewer, a turn more or less is several percent of a tenant's work
TURN_S = 0.03           # a tenant without a cap has turns of about 25 ms
SIM_TURN_S = 0.05       # the longest turn
REPORT_S = 0.01


def counts(settings):
    return (1, 2, 4) if settings.quick else (1, 2, 4, 8, 16, 32, 50, 64)


def window_s(settings, count, turn_s=SIM_TURN_S):
    return max(2.0, settings.cell_seconds / 2, ROUNDS * count * turn_s)


def setup_s(count):
    return 1.5 + 0.25 * count


def seconds_of(settings):
    return 15 + sum(window_s(settings, count, TURN_S) + setup_s(count) + 3 +
                    (settings.native_seconds + setup_s(count) + 2 if count <= NATIVE_MOST else 0)
                    for count in counts(settings))


def waits_ms(outcome):
    """How long the tenant waited between its turns, by reports without a kernel's end."""
    series, end = outcome.series, outcome.settle_s + outcome.seconds
    inside = [i for i, t in enumerate(series.at) if outcome.settle_s <= t <= end]
    return [1e3 * gap for gap in stats.gaps([series.at[i] for i in inside], [series.done[i] for i in inside], 1.5 * REPORT_S)]


def add_waits(bench, count, outcomes, native):
    """Adds the row of waits. Returns the 99th percentile, or None for a tenant alone."""
    mine, unmanaged = ([wait for outcome in of or () for wait in waits_ms(outcome)] for of in (outcomes, native))
    if not mine:
        return None
    longest = stats.percentile(mine, 99)
    bench.result.add(Row(f"scale, {count} tenants: wait for a turn, p99", "ms", longest,
                         native=stats.percentile(unmanaged, 99) if unmanaged else None))
    return longest


def measure(bench, count):
    """Adds the rows of this number of tenants. Returns (tenants, sum, Jain's index, p99 of the waits)."""
    seconds = window_s(bench.settings, count, bench.bar(TURN_S, SIM_TURN_S))
    native = None
    if count <= NATIVE_MOST:
        native = bench.loads.run([Load(f"n{i}", LARGE) for i in range(count)],
                                 bench.settings.native_seconds, setup_s=setup_s(count), report_s=REPORT_S)
    watch, turns = Watch(bench.machine), []

    def note(change):
        change()
        turns.append({t["name"]: t["devices"][0]["leases"] for t in bench.machine.ps()["tenants"]})
    settle_s = bench.settings.settle_s
    loads = [fair(f"s{i}", LARGE, int(10000 / count) / 100) for i in range(count)]
    for load in loads:
        load.options[1] = "1GiB"
    outcomes = bench.loads.run(loads, seconds, setup_s=setup_s(count), report_s=REPORT_S,
                               events=[(settle_s, lambda: note(watch.start)), (settle_s + seconds, lambda: note(watch.stop))])
    shares = [outcome.share_pct for outcome in outcomes]
    total, index = sum(shares), stats.jain(shares)
    bench.result.add(Row(f"scale, {count} tenants: sum", "%", total, 100,
                         sum(o.share_pct for o in native) if native else None))
    bench.result.add(Row(f"scale, {count} tenants: Jain's index", "", index, 1,
                         stats.jain([o.share_pct for o in native]) if native else None))
    longest = add_waits(bench, count, outcomes, native)
    if count > 1 and bench.machine.sharing != "space":    # by space there are no turns
        begin, end = turns[-2:]
        fewest = min(end[load.name] - begin[load.name] for load in loads)
        bench.result.add(at_least(Row(f"scale, {count} tenants: turns in {seconds:g} s, the fewest", "turns", fewest), ROUNDS))
    cpu = Row(f"scale, {count} tenants: daemon's CPU", "%", sum(watch.pct.values()))
    bench.result.add(at_most(cpu, bench.bar(MOST_PCT, 2 * MOST_PCT)) if count == 50 else cpu)
    return count, total, index, longest


def measure_idle(bench):
    watch = Watch(bench.machine)
    time.sleep(2)       # the daemon's work at its start does not count
    watch.start()
    time.sleep(2 if bench.settings.quick else 10)
    watch.stop()
    bench.result.add(at_most(Row("scale, daemon's CPU with 1 idle tenant", "%", sum(watch.pct.values())),
                             bench.bar(IDLE_PCT, 2 * IDLE_PCT)))


def add_chart(bench, curve, end, title, label, column, unit):
    values = [point[column] for point in curve if point[column] is not None]
    ticks = [str(point[0]) for point in curve if point[column] is not None]
    bench.result.charts.append(lambda stem: plot.lines(
        f"{stem}{end}.svg", title, {label: values}, {}, unit, "tenants", ticks))


def scale(bench):
    """All numbers of tenants belong to one result, because the recommended maximum needs all of them."""
    measure_idle(bench)
    curve = []
    for count in counts(bench.settings):
        try:
            curve.append(measure(bench, count))
        except Failed as error:
            bench.result.skip(f"scale, {count} tenants", str(error))
            break
    best = stats.recommended([point[:3] for point in curve], LEAST_SUM_PCT, LEAST_JAIN)
    if best:
        bench.result.add(Row(f"scale, recommended maximum (sum at least {LEAST_SUM_PCT} %, Jain's "
                             f"index {LEAST_JAIN})", "tenants", best))
    if len(curve) > 1:
        add_chart(bench, curve, "", "Equal tenants: sum of work, one alone is 100 %", "sum", 1, "%")
        add_chart(bench, curve, "-fairness", "Equal tenants: fairness of their work", "Jain's index", 2, "")
        add_chart(bench, curve, "-wait", "Equal tenants: wait for a turn", "99th percentile", 3, "ms")
