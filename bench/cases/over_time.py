"""GPU time that the driver measures but that nobody was charged for: how soon a tenant that works past the library is ended,
what it gains until then, and how near to an accusation honest tenants come.

The tenant's process registers as the library does, and then works without the library (bench/load/past_library.py)."""

import os
import re
import sys
import tempfile
import time

from harness.build import REPOSITORY
from harness.job import Failed
from harness.load import Kernel
from harness.result import Row, at_most

from .shares import LARGE, SMALL, capped, fair

PAST_LIBRARY = os.path.join(REPOSITORY, "bench", "load", "past_library.py")
CAP_PCT = 10
RUNS = 3
THIEF_S, SETUP_S, WINDOW_S = 20, 3, 10
HONEST_S, QUICK_HONEST_S = 40, 10
FOUND_S, GAIN_POINTS = 2, 2
MOST_UNPAID_MS = 500, 10000   # certain, likely: policy/safety/time_policy.h
SETTINGS = "on_violation = end\nlog_level = debug\n"
# allotd's line about a tenant in a reading, at log level debug
READING = re.compile(r"GPU \d+, tenant '(.*)': samples .*Unpaid: certain (\d+) ms, likely (\d+) ms")


def start(bench, load, seconds, *more, before=()):
    return bench.machine.tenant(load.name, [*before, *bench.loads.command(
        load.kernel, "--seconds", str(seconds), "--report-every", "0.05", *more)], load.options)


def work_pct(job, begin, end, rate):
    """Work that the job reported between two points of Unix time, in percent of one native process alone."""
    kernels = sum(line["kernels"] for at, line in job.json() if "t_s" in line and begin < at <= end)
    return 100 * kernels / (end - begin) / rate


def steal(bench, is_beside, number):
    """Returns the seconds until the thief was ended, and the work of the thief and of the victim in WINDOW_S. Each run has a
    thief of another name: for 30 s after a violation, allotd refuses root's tenants of that name."""
    rate = bench.loads.native_rate(LARGE)
    victim = start(bench, fair("victim", LARGE, 50), SETUP_S + WINDOW_S + 5) if is_beside else None
    time.sleep(SETUP_S if is_beside else 0)
    load = capped(f"thief-{'beside' if is_beside else 'alone'}-{number}", LARGE, CAP_PCT)
    thief = start(bench, load, THIEF_S, before=(sys.executable, PAST_LIBRARY))
    if thief.wait_line(0, 30) is None:
        raise Failed(f"thief: did not begin{thief.tail()}")
    begin = thief.lines[0][0]
    thief.wait(THIEF_S + 30)    # allot-load ends with status 0 on SIGTERM
    ended = time.time()
    time.sleep(max(0, begin + WINDOW_S - ended))
    works = [work_pct(job, begin, begin + WINDOW_S, rate) if job else None for job in (thief, victim)]
    bench.machine.stop_all()
    return ended - begin, *works


def thieves(bench):
    for name, is_beside in (("beside a tenant that always works", True), ("alone", False)):
        runs = [steal(bench, is_beside, number) for number in range(1 if bench.settings.quick else RUNS)]
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
    readings = READING.findall(bench.machine.daemon_log())
    for job in jobs:
        mine = [(int(certain), int(likely)) for name, certain, likely in readings if name == job.name]
        if not mine:
            raise Failed(f"{job.name}: no reading of the driver's figures")
        bench.result.add(Row(f"honest, {job.name}: readings", "", len(mine)))
        for title, most, values in zip(("certainly", "likely"), MOST_UNPAID_MS, zip(*mine)):
            bench.result.add(at_most(Row(f"honest, {job.name}: most time that is {title} unpaid", "ms", max(values)),
                                     most / bench.bar(10, 2)))


def seconds_of(settings):
    runs = 1 if settings.quick else RUNS
    return runs * 2 * (SETUP_S + WINDOW_S + 8) + (QUICK_HONEST_S if settings.quick else HONEST_S) + 15


def over_time(bench):
    machine = bench.machine
    with tempfile.TemporaryDirectory(prefix="allot-gpu-", dir="/tmp") as folder:
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
            thieves(bench)
            machine.accusations()   # these were no honest tenants
        finally:
            machine.tenant_environment = before
            machine.restart([])
