"""Compares sensors of GPU utilization, allot's own and those of NVML, with the work that was done: the error, the
delay, and the cost of one call. Names the sensors that the GPU lacks."""

import os
import sys
import tempfile
import threading
import time

from harness import stats
from harness.build import REPOSITORY
from harness.job import Failed
from harness.load import Load
from harness.result import Row, within as judge

from .shares import LARGE, MEMORY, capped

ALLOT = "allot busy time"
INTERVAL_S = 0.05
POINTS, SIM_POINTS = 2, 15      # the most by which allot's own figure may differ from the work done
SENSE = os.path.join(REPOSITORY, "bench", "harness", "sense.py")


class Readings:
    """The sensors' values while a case ran: {sensor: [(Unix time, percent)]}."""

    def __init__(self, bench, seconds):
        self.bench = bench
        self.found = {}
        self.cost_us = {}
        self.missing = {}
        machine = bench.machine
        library = "libnvidia-ml.so.1"
        if machine.sim:
            library = os.path.join(machine.build.sim_dir(), library)
        self.job = machine.native("sensors", [sys.executable, SENSE, library, str(seconds),
                                              str(INTERVAL_S)])
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._ask_allot, daemon=True)
        self.thread.start()

    def _ask_allot(self):
        """allot's own sensor: the time charged in the last second, from `allot ps`."""
        costs = []
        while not self.over.is_set():
            begin = time.time()
            try:
                busy = self.bench.machine.device()["busy_pct"]
            except (Failed, OSError):
                continue
            now = time.time()
            costs.append(1e6 * (now - begin))
            self.found.setdefault(ALLOT, []).append((now, busy))
            self.over.wait(4 * INTERVAL_S)
        if costs:
            self.cost_us[ALLOT] = stats.percentile(costs, 50)

    def finish(self):
        self.over.set()
        self.thread.join()
        self.job.check(60)
        for _, line in self.job.json():
            for sensor, value in line.get("values", {}).items():
                self.found.setdefault(sensor, []).append((line["at"], value))
            self.cost_us.update(line.get("cost_us", {}))
            self.missing.update(line.get("missing", {}))
        return self


def measure(bench, load, seconds):
    """(share of work, readings within the window, readings object)"""
    length = bench.settings.settle_s + seconds
    began = []
    readings = []

    def start():
        began.append(time.time())
        readings.append(Readings(bench, length + 0.2))
    outcome, = bench.loads.run([load], seconds, events=[(0, start)])
    found = readings[-1].finish()
    # allot's own figure covers the last second.
    begin = began[-1] + bench.settings.settle_s + 1
    within = {sensor: [value for at, value in values if begin <= at < began[-1] + length]
              for sensor, values in found.found.items()}
    return outcome, {sensor: values for sensor, values in within.items() if values}, found, began[-1]


def sensors(bench):
    seconds = 3.0 if bench.settings.quick else 6.0
    costs, missing = {}, {}
    for pct in (50,) if bench.settings.quick else (10, 30, 50, 80):
        outcome, within, found, _ = measure(bench, capped("sensed", LARGE, pct), seconds)
        bench.result.add(Row(f"sensors, work done at {pct} %", "%", outcome.share_pct, pct))
        for sensor, values in sorted(within.items()):
            row = Row(f"sensors, {sensor} at {pct} %: error", "points", stats.mean(values) - outcome.share_pct, 0)
            bench.result.add(judge(row, bench.bar(POINTS, SIM_POINTS)) if sensor == ALLOT else row)
        costs.update(found.cost_us)
        missing.update(found.missing)
    seen = add_delays(bench, seconds)
    for sensor in sorted(costs.keys() - missing.keys()):
        # One call of GPM has several readings, whose names begin with the sensor's.
        if not any(name.startswith(sensor) for name in seen):
            missing[sensor] = "answers, but never with a reading"
    for sensor, cost in sorted(costs.items()):
        bench.result.add(Row(f"sensors, {sensor}: a call", "us", cost))
    for sensor, reason in sorted(missing.items()):
        bench.result.skip(f"sensors, {sensor}", reason)


def add_delays(bench, seconds):
    """Measures the delay of each sensor: from the first work of an idle tenant until the sensor shows half of its final
    reading. Returns the sensors that gave any reading."""
    busy_at = bench.settings.settle_s + 0.5
    with tempfile.NamedTemporaryFile("w", suffix=".trace", encoding="utf-8") as trace:
        trace.write(f"0 {busy_at:.3f} 10000\n")
        trace.flush()
        load = Load("sensed", LARGE, [*MEMORY], ("--trace", trace.name))
        _, _, found, began = measure(bench, load, seconds)
    for sensor, values in sorted(found.found.items()):
        later = [(at - began - busy_at, value) for at, value in values if at > began + busy_at]
        risen = [t for t, value in later if value >= later[-1][1] / 2 > 0]
        if risen:
            bench.result.add(Row(f"sensors, {sensor}: half of a step seen after", "ms",
                                 1e3 * risen[0]))
        else:
            bench.result.skip(f"sensors, {sensor}: delay", "shows nothing of the step")
    return found.found.keys()
