"""Tenants whose memory does not fit on the GPU together take turns on it (`--on-full swap`): the work done, the speed of moving
memory, and the cost of the option to tenants that do fit."""

import os
import tempfile
import time

from harness import plot
from harness.job import Failed
from harness.load import Kernel
from harness.result import Row, at_least, at_most
from harness.room import Room

KERNEL = Kernel(1000, 8192)
PART = 0.60                 # of the GPU's memory, for each of two tenants
FITS = 0.30                 # the same, for two tenants that fit together
SPARE_MIB = 1536            # of a task's part, for its context and the driver's rounding
ARENA_MIB = 64              # arena size beyond the memory that moves
MOVES = 3
RATE_GIB_S = 40
SERIAL = 0.8
SLOWER_PCT = 1
IDLE = ("--burst", "1", "--period-ms", "900000")
SAMPLE_S = 0.05
QUIET_S = 2.0
COLORS = {"in": "#1f6fb4", "leaving": "#e0a030", "returning": "#e0a030", "out": "#d9dde2",
          "short": "#c0504d", "fails": "#c0504d"}


def work_s(settings):
    """The time that one task's work takes alone."""
    return 6.0 if settings.quick else 40.0


FIT_WORK = 0.5              # work of each tenant that fits, in parts of work_s(): there are four runs of two


def seconds_of(settings):
    return 60 + 7 * work_s(settings)


class Scene:
    """A GPU with so little free memory that host memory has room for the arenas of two tasks with 60 % of it each."""

    def __init__(self, bench):
        self.bench, self.machine = bench, bench.machine
        self.room = Room(bench, 2 * PART).mib

    def mib(self, part):
        return int(part * self.room)

    def quota(self, part):
        return ["--memory", f"{self.mib(part)}MiB"]

    def swap(self, part):
        return [*self.quota(part), "--on-full", "swap", "--swap-arena",
                f"{self.mib(part) - SPARE_MIB + ARENA_MIB}MiB"]

    def start(self, name, part, options, *more):
        command = self.bench.loads.command(KERNEL, "--report-every", "0", "--mib",
                                           str(self.mib(part) - SPARE_MIB), *more)
        return self.machine.start(name, command, options)

    def worker(self, name, part, options, work):
        kernels = int(work * work_s(self.bench.settings) * 1e6 / KERNEL.cost_us)
        return self.start(name, part, options, "--kernels", str(kernels), "--seconds", "3600")

    def places(self):
        """{tenant's name: state of its memory (on the GPU, moving, off)}"""
        return {tenant["name"]: tenant["swap"]["state"] for tenant in self.machine.ps()["tenants"]
                if tenant.get("swap")}

    def together(self, label, part, options, count=2, work=1.0):
        """(seconds, how many tasks succeeded, rows for plot.spans())"""
        begin = time.monotonic()
        jobs = [self.worker(f"{label}-{i + 1}", part, options, work) for i in range(count)]
        ends, spans = [None] * count, [[] for _ in range(count)]
        while None in ends:
            now = time.monotonic() - begin
            if now > 60 + 12 * work_s(self.bench.settings):
                raise Failed(f"{label}: not at their ends within {now:.0f} s")
            places = self.places() if options else {}
            for i, job in enumerate(jobs):
                if ends[i] is None:
                    plot.note(spans[i], now, COLORS[places.get(job.name) or "in"])
                    if job.process.poll() is not None:
                        ends[i] = now
            time.sleep(SAMPLE_S)
        ended = [job.wait(5) == 0 for job in jobs]
        if options and not all(ended):
            raise Failed("; ".join(f"{job.name}: status {job.wait(5)}{job.tail()}"
                                   for job, well in zip(jobs, ended) if not well))
        self.machine.settle()
        rows = [(job.name, parts, f"{end:.1f} s" if well else "out of memory")
                for job, parts, end, well in zip(jobs, spans, ends, ended)]
        for row, well in zip(rows, ended):
            if not well:
                row[1][-1] = (*row[1][-1][:2], COLORS["fails"])
        return max(ends), sum(ended), rows


def wait_for(condition, what, limit_s=120):
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise Failed(f"{what}: not within {limit_s} s")
        time.sleep(SAMPLE_S)


def is_page_locked(log):
    """Whether the tenant has reported page-locking, and then nothing more for a while."""
    return os.path.exists(log) and time.time() - os.stat(log).st_mtime > QUIET_S and \
        "page-locked" in open(log, encoding="utf-8").read()


def rates(bench, scene):
    """Measures moves out and in with an arena that is page-locked in advance, which needs a second tenant that does not fit."""
    machine = bench.machine
    other = machine.start("other", ["/bin/sleep", "3600"], scene.swap(PART))
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        command = bench.loads.command(KERNEL, *IDLE, "--seconds", "3600", "--mib",
                                      str(scene.mib(PART) - SPARE_MIB))
        job = machine.tenant("moves", ["env", f"ALLOT_LOG={log}", *command], scene.swap(PART))
        wait_for(lambda: is_page_locked(log), "page-locking of the arena", 300)
        got = {"out": [], "in": []}
        for _ in range(MOVES):
            for place, words in (("out", ("pause", "moves", "--swap-out")),
                                 ("in", ("resume", "moves"))):
                machine.tell(*words)
                wait_for(lambda: scene.places().get("moves") == place, f"memory {place}")
                swap = next(t["swap"] for t in machine.ps()["tenants"] if t["name"] == "moves")
                got[place].append(swap["swappable_bytes"] / 2**30 / swap["moved_s"])
        for one in (job, other):
            one.kill()
        machine.settle()
    moved = (scene.mib(PART) - SPARE_MIB) / 1024
    for place, title in (("out", "off the card"), ("in", "back")):
        bench.result.add(at_least(Row(f"{moved:.0f} GiB {title}, the slowest of {MOVES}", "GiB/s",
                                      min(got[place])), bench.bar(RATE_GIB_S, RATE_GIB_S / 2)))


def fitting(bench, scene):
    """Two tenants that fit together, alternately with --on-full swap and without it."""
    took = {"fail": [], "swap": []}
    for i in range(1 if bench.settings.quick else 2):
        for way in ("fail", "swap") if i % 2 == 0 else ("swap", "fail"):
            options = scene.swap(FITS) if way == "swap" else scene.quota(FITS)
            lasted, ended, _ = scene.together(f"fits-{way}", FITS, options, work=FIT_WORK)
            if ended != 2:
                raise Failed(f"two of {100 * FITS:.0f} %: only {ended} came to their end")
            took[way].append(lasted)
    bench.result.add(at_most(Row("two that fit: slower with swap allowed", "%", 100 * (
        min(took["swap"]) / min(took["fail"]) - 1)), bench.bar(SLOWER_PCT, 10)))


def oversubscribe(bench):
    machine = bench.machine
    refused = machine.refuses("--on-full", "swap")
    if refused:
        bench.result.skip("--on-full swap", refused)
        return
    bench.loads.calibrate(KERNEL)
    scene = Scene(bench)
    add = bench.result.add
    add(Row("the card, of which each needs 60 %", "GiB", scene.room / 1024))
    _, ended, native = scene.together("native", PART, None)
    add(Row("native: came to their end", "of 2", ended, 2))
    alone, _, _ = scene.together("alone", PART, None, count=1)
    add(Row("native: one alone", "s", alone))
    lasted, ended, swapped = scene.together("swap", PART, scene.swap(PART))
    add(at_least(Row("swap: came to their end", "of 2", ended, 2), 2))
    add(Row("swap: both", "s", lasted, native=2 * alone))
    add(at_least(Row("swap: throughput against one after the other", "x", 2 * alone / lasted),
                 bench.bar(SERIAL, SERIAL / 2)))
    rates(bench, scene)
    fitting(bench, scene)
    machine.stop_all()
    bench.result.charts.append(lambda stem: plot.spans(
        stem + ".svg", "Two tasks of 60 % of the GPU's memory: on the GPU, moving, out",
        {"native": native, "swap": swapped}))
