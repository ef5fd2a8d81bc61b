"""The cost of the scheduler's decisions in clusters of 100, 1,000 and 5,000 nodes with 8 GPUs each and 8 pods on each GPU.
Runs `scheduler-scale`, one process without HTTP, API server and GPU."""

import json
import subprocess

from harness import plot
from harness.job import Failed
from harness.result import Row, at_least, at_most

SIZES = (100, 1000, 5000)
FILTER_P99_MS = 10
PLACED_PER_S = 500
RESIDENT_MIB = 100
KNOWN_S = 3


def measure(bench):
    command = [bench.machine.build.program("scheduler-scale"), "--json", *map(str, SIZES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"scheduler-scale: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def add_rows(bench, line):
    add, size = bench.result.add, f"{line['nodes']:,} nodes, {line['pods']:,} pods"
    add(at_most(Row(f"{size}: known after", "s", line["known_s"]), KNOWN_S))
    for verb in ("filter", "prioritize"):
        for one in line[verb]:
            what = f"{size}: {verb}{' by ' + one['policy'] if 'policy' in one else ''}, {one['what']}"
            add(Row(f"{what}: median", "ms", one["p50_ms"]))
            add(at_most(Row(f"{what}: p99", "ms", one["p99_ms"]), FILTER_P99_MS))
            if "json_p99_ms" in one:
                add(at_most(Row(f"{what}: p99 with reading and writing all names", "ms", one["json_p99_ms"]), FILTER_P99_MS))
    add(Row(f"{size}: a decision, from filter to the bound pod", "ms", line["decision_ms"]))
    add(at_least(Row(f"{size}: pods placed", "a second", line["placed_per_s"]), PLACED_PER_S))
    add(at_most(Row(f"{size}: memory", "MiB", line["resident_mib"]), RESIDENT_MIB))


def scheduler_scale(bench):
    bench.result.has_gpu = False
    found = measure(bench)
    for line in found:
        add_rows(bench, line)
    for less, more in zip(found, found[1:]):
        times = more["nodes"] / less["nodes"]
        row = Row(f"a decision among {more['nodes']:,} nodes over one among {less['nodes']:,}", "x",
                  more["decision_ms"] / less["decision_ms"])
        bench.result.add(at_most(row, times))
    series = {"a decision": [line["decision_ms"] for line in found],
              "filter, median": [line["filter"][0]["p50_ms"] for line in found],
              "prioritize by binpack, median": [line["prioritize"][0]["p50_ms"] for line in found]}
    bench.result.charts.append(lambda stem: plot.lines(
        stem + ".svg", "What the scheduler takes, by nodes", series, {}, "ms", "nodes", [f"{size:,}" for size in SIZES]))
