"""The daemon's CPU time by thread: with 50 and with three tenants that never stop, with kernels of 1 ms and of 20 us,
and with tenants without work."""

import os
import time

from harness.result import Row, at_most

from .shares import Kernel, fair

MOST_PCT = 2
IDLE_PCT = 0.1
LONG, SHORT = Kernel(1000, 132), Kernel(20, 132)
SETUP_S = 2.0
IDLE_S = 10.0       # wait until the daemon's work at its start no longer counts


def threads(pid):
    """{thread: (name, nanoseconds on a CPU)}: schedstat counts them, stat only whole ticks."""
    found = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        folder = f"/proc/{pid}/task/{thread}"
        with open(f"{folder}/comm", encoding="utf-8", errors="replace") as file:
            name = file.read().strip()
        with open(f"{folder}/schedstat", encoding="ascii") as file:
            found[thread] = name, int(file.read().split()[0])
    return found


class Watch:
    """Percent of one core by thread's name between start() and stop()."""

    def __init__(self, machine):
        self.pid = machine.daemon_pid()
        self.pct = {}

    def start(self):
        self.before, self.begin = threads(self.pid), time.monotonic()

    def stop(self):
        lasted_ns = 1e9 * (time.monotonic() - self.begin)
        for thread, (name, used) in threads(self.pid).items():
            used -= self.before.get(thread, (name, 0))[1]
            self.pct[name] = self.pct.get(name, 0) + 100 * used / lasted_ns


def cases(settings):
    """(tenants, kernel or None)"""
    many = 10 if settings.quick else 50
    return [(many, LONG), (many, SHORT), (3, LONG), (3, SHORT), (many, None), (3, None)]


def case_s(settings, count):
    return SETUP_S + 0.2 * count + IDLE_S + window_s(settings) + 3


def window_s(settings):
    return 4.0 if settings.quick else 12.0


def seconds_of(settings):
    return sum(case_s(settings, count) for count, _ in cases(settings))


def add_rows(bench, title, watch, most):
    bench.result.add(at_most(Row(f"daemon's CPU, {title}", "%", sum(watch.pct.values())), most))
    for name, pct in sorted(watch.pct.items()):
        bench.result.add(Row(f"daemon's CPU, {title}: {name}", "%", pct))


def at_work(bench, count, kernel):
    watch = Watch(bench.machine)
    settle_s, seconds = bench.settings.settle_s, window_s(bench.settings)
    loads = [fair(f"c{i}", kernel, round(100 / count, 2)) for i in range(count)]
    for load in loads:
        load.options[1] = "1GiB"
    outcomes = bench.loads.run(loads, seconds, setup_s=SETUP_S + 0.2 * count,
                               events=[(settle_s, watch.start), (settle_s + seconds, watch.stop)])
    title = f"{count} tenants, {kernel}"
    add_rows(bench, title, watch, bench.bar(MOST_PCT, 2 * MOST_PCT))
    bench.result.add(Row(f"their work, {title}: sum", "%",
                         sum(outcome.share_pct for outcome in outcomes), 100))


def idle(bench, count):
    """Measures tenants without work: they have registered, and their first burst is due long after the end of the bench."""
    command = bench.loads.command(LONG, "--seconds", "3600", "--burst", "1", "--start-at",
                                  f"{time.time() + 3600:.0f}")
    jobs = [bench.machine.tenant(f"i{i}", command, ["--memory", "1GiB"]) for i in range(count)]
    try:
        time.sleep(SETUP_S + 0.2 * count + IDLE_S)
        watch = Watch(bench.machine)
        watch.start()
        time.sleep(window_s(bench.settings))
        watch.stop()
    finally:
        for job in jobs:
            job.kill()
    add_rows(bench, f"{count} idle tenants", watch, bench.bar(IDLE_PCT, 2 * IDLE_PCT))


def daemon_cpu(bench):
    for count, kernel in bench.cells(cases(bench.settings),
                                     lambda case: case_s(bench.settings, case[0])):
        if kernel:
            at_work(bench, count, kernel)
        else:
            idle(bench, count)
        bench.machine.stop_all()
