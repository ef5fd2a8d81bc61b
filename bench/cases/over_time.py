"""GPU time that the driver measures but that nobody was charged for: how soon a tenant that works past the library is ended,
what it gains until then, and how near to an accusation honest tenants come.

The tenant registers with the library. Then it launches kernels by a copy of the driver under another name."""

import ctypes
import os
import re
import tempfile
import time

from harness.job import Failed
from harness.load import Kernel
from harness.result import Row, at_most

from .shares import LARGE, SMALL, capped, fair

CAP_PCT = 10
RUNS = 3
THIEF_S, SETUP_S, WINDOW_S = 20, 3, 10
HONEST_S, QUICK_HONEST_S = 40, 10
FOUND_S, GAIN_POINTS = 2, 2
MOST_UNPAID_MS = 500    # policy/safety/time_policy.h
SETTINGS = "on_violation = end\nlog_level = debug\n"
# allotd's line about a tenant in a reading, at log level debug
READING = re.compile(r"tenant '(.*)' used ([\d.]+) % of the time of GPU \d+ lately and was charged for at most ([\d.]+) %; "
                     r"unpaid until now: (\d+) ms")


def driver_path(machine):
    if machine.sim:
        return os.path.join(machine.build.sim_dir(), "libcuda.so.1")
    ctypes.CDLL("libcuda.so.1")
    with open("/proc/self/maps", encoding="utf-8") as file:
        return next(line.split()[-1] for line in file if "/libcuda.so" in line)


def copy_driver(machine, folder):
    """Copies the driver to a file with another name, also inside."""
    with open(driver_path(machine), "rb") as file:
        driver = file.read()
    copy = os.path.join(folder, "libmine.so.1")
    with open(copy, "wb") as file:
        file.write(driver.replace(b"libcuda.so.1", b"libmine.so.1"))
    return copy


def start(bench, load, seconds, *more):
    return bench.machine.tenant(load.name, bench.loads.command(
        load.kernel, "--seconds", str(seconds), "--report-every", "0.05", *more), load.options)


def work_pct(job, begin, end, rate):
    """Work that the job reported between two points of Unix time, in percent of one native process alone."""
    kernels = sum(line["kernels"] for at, line in job.json() if "t_s" in line and begin < at <= end)
    return 100 * kernels / (end - begin) / rate


def steal(bench, copy, is_beside):
    """Returns the seconds until the thief was ended, and the work of the thief and of the victim in WINDOW_S."""
    rate = bench.loads.native_rate(LARGE)
    victim = start(bench, fair("victim", LARGE, 50), SETUP_S + WINDOW_S + 5) if is_beside else None
    time.sleep(SETUP_S if is_beside else 0)
    thief = start(bench, capped("thief", LARGE, CAP_PCT), THIEF_S, "--driver-copy", copy)
    if thief.wait_line(0, 30) is None:
        raise Failed(f"thief: did not begin{thief.tail()}")
    begin = thief.lines[0][0]
    thief.wait(THIEF_S + 30)    # allot-load ends with status 0 on SIGTERM
    ended = time.time()
    if ended - begin > THIEF_S - 1:
        raise Failed("thief: was not ended")
    time.sleep(max(0, begin + WINDOW_S - ended))
    works = [work_pct(job, begin, begin + WINDOW_S, rate) if job else None for job in (thief, victim)]
    bench.machine.stop_all()
    return ended - begin, *works


def thieves(bench, copy):
    for name, is_beside in (("beside a tenant that always works", True), ("alone", False)):
        runs = [steal(bench, copy, is_beside) for _ in range(1 if bench.settings.quick else RUNS)]
        found, gained, victims = (list(values) for values in zip(*runs))

        def row(title, unit, values, asked=None, name=name):
            return Row(f"past the library, {name}: {title}", unit, sorted(values)[len(values) // 2], asked, runs=values)
        bench.result.add(at_most(row("ended after", "s", found), bench.bar(FOUND_S, 2 * FOUND_S)))
        bench.result.add(at_most(row(f"its work in {WINDOW_S} s", "%", gained, CAP_PCT), CAP_PCT + bench.bar(GAIN_POINTS, 40)))
        if is_beside:
            bench.result.add(row(f"the other's work in {WINDOW_S} s", "%", victims))


def honest(bench):
    """Tenants of four kinds together. An accusation would end them."""
    seconds = QUICK_HONEST_S if bench.settings.quick else HONEST_S
    short = Kernel(200, 264)
    jobs = [start(bench, load, seconds, *more) for load, more in (
        (fair("always", LARGE, 40), ()), (capped("capped", SMALL, 20), ()),
        (capped("short", short, 10), ("--burst", "5")), (fair("long", SMALL, 10), ("--burst", "50")))]
    for job in jobs:
        job.check(seconds + 60)
    readings = [(name, float(used) - float(charged), int(unpaid))
                for name, used, charged, unpaid in READING.findall(bench.machine.daemon_log())]
    for job in jobs:
        mine = [reading for reading in readings if reading[0] == job.name]
        if not mine:
            raise Failed(f"{job.name}: no reading of the driver's figures")
        bench.result.add(Row(f"honest, {job.name}: readings", "", len(mine)))
        bench.result.add(Row(f"honest, {job.name}: most that the driver measured beyond the charge", "points",
                             max(beyond for _, beyond, _ in mine)))
        bench.result.add(at_most(Row(f"honest, {job.name}: most unpaid time", "ms", max(unpaid for *_, unpaid in mine)),
                                 MOST_UNPAID_MS / 2))


def seconds_of(settings):
    runs = 1 if settings.quick else RUNS
    return runs * 2 * (SETUP_S + WINDOW_S + 8) + (QUICK_HONEST_S if settings.quick else HONEST_S) + 15


def over_time(bench):
    machine = bench.machine
    with tempfile.TemporaryDirectory(prefix="allot-gpu-", dir="/tmp") as folder:
        copy = copy_driver(machine, folder)
        config = os.path.join(folder, "settings")
        with open(config, "w", encoding="utf-8") as file:
            file.write(SETTINGS)
        before = machine.tenant_environment
        machine.tenant_environment = dict(before, ALLOT_CONFIG=config)
        try:
            machine.restart([])
            honest(bench)
            accusations = machine.accusations()
            if accusations:
                raise Failed(f"an honest tenant was accused: {accusations[0]}")
            thieves(bench, copy)
            machine.accusations()   # these were no honest tenants
        finally:
            machine.tenant_environment = before
            machine.restart([])
