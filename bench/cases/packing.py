"""How full a cluster gets with allot's policies, HAMi's formulas and fragmentation gradient descent, for the same tasks.
Runs `cluster-packing` in virtual time, without a GPU."""

import json
import subprocess

from harness import plot
from harness.job import Failed
from harness.result import Row, at_least

OURS, DEFAULT = "allot-fragmentation", "allot-default"
FIRST_SEED = 20231      # of cluster-packing, which draws the tasks; each further seed is one more
RIVALS = ("hami-binpack", "fgd")        # the better of these two is the bar
NAMES = {"allot-fragmentation": "allot, fragmentation", "allot-binpack": "allot, binpack",
         "allot-default": "allot, its defaults", "hami-binpack": "HAMi's formula, binpack",
         "hami-default": "HAMi's formula, its defaults", "fgd": "gradient descent",
         "fgd+": "gradient descent, the fuller first", "random": "chance"}
SETTINGS = {"sizes": "sizes alone", "models": "models named", "cpus": "with CPUs"}
# (experiment, setting, about how many seconds all seeds take), in an order in which the halves by --part take about as long.
CELLS = (("day", "models", 370), ("day", "sizes", 155), ("fill", "models", 70), ("day", "cpus", 165), ("fill", "cpus", 50),
         ("fill", "sizes", 90))
SHOWN = (OURS, "hami-binpack", "fgd", "random")


def title_of(line):
    what = "filled to the end" if line["experiment"] == "fill" else f"a day at {100 * line['demand']:.0f} % load"
    return f"{what}, {SETTINGS[line['setting']]}"


def cell_seconds(settings, cell):
    return 4 if settings.quick else cell[2]


def seconds_of(settings):
    return sum(cell_seconds(settings, cell) for cell in CELLS)


def measure(bench, experiment, setting):
    """{title: {policy: line}}"""
    seeds = 1 if bench.settings.quick else 5
    command = [bench.machine.build.program("cluster-packing"), "--seeds", str(seeds), "--experiment", experiment,
               "--setting", setting]
    if bench.settings.quick:
        command += ["--scale", "16"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"cluster-packing: {done.stderr.strip()}")
    found = {}
    for line in map(json.loads, done.stdout.splitlines()):
        found.setdefault(title_of(line), {})[line["policy"]] = line
    return found


def add_rows(bench, title, by_policy):
    """Adds rows. Only a full run judges them, because one seed of a small cluster does not show which policy is better."""
    bar = max(by_policy[rival]["packed_pct"] for rival in RIVALS)
    for policy, line in by_policy.items():
        row = Row(f"{title}: {NAMES[policy]}", "%", line["packed_pct"])
        bench.result.add(at_least(row, bar) if policy == OURS and not bench.settings.quick else row)
    for policy in SHOWN:
        line, name = by_policy[policy], NAMES[policy]
        if line["experiment"] == "fill":
            bench.result.add(Row(f"{title}, first without room: {name}", "% full",
                                 line["at_first_failure_pct"]))
            bench.result.add(Row(f"{title}, as much asked as there is: {name}", "% full",
                                 line["at_full_demand_pct"]))
        else:
            bench.result.add(Row(f"{title}, wait: {name}", "s", line["wait_s"]))
        bench.result.add(Row(f"{title}, a decision: {name}", "us", line["decision_us"]))
        for size, part in line["placed_pct"].items():
            bench.result.add(Row(f"{title}, placed of {size}: {name}", "% asked", part))


def cluster_packing(bench):
    bench.result.has_gpu = False
    bench.result.seed = FIRST_SEED
    groups = {}
    for experiment, setting, _ in bench.cells(CELLS, lambda cell: cell_seconds(bench.settings, cell)):
        found = measure(bench, experiment, setting)
        groups.update(found)
        for title, by_policy in found.items():
            add_rows(bench, title, by_policy)
    rows = [Row(title, "%", lines[OURS]["packed_pct"], native=lines["hami-binpack"]["packed_pct"],
                rival=lines["fgd"]["packed_pct"]) for title, lines in groups.items()]
    labels = {**plot.LABELS, "native": "HAMi's binpack", "rival": "gradient descent"}
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "GPUs allocated, by policy", rows, "%", labels))
