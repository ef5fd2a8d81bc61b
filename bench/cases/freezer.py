"""Containers without liballot.so, which the daemon freezes: how long freezing and thawing take, the CPU cost of
watching, and how many containers are frozen at their start before they hold memory. Needs root and cgroups; uses a
separate daemon."""

import itertools
import os
import shutil
import statistics
import subprocess
import tempfile
import time

from harness.boxes import Boxes, wait_until, why_not
from harness.load import Kernel
from harness.machine import VISIBLE
from harness.result import Row, at_least, at_most

from .daemon_cpu import threads

MIB = 1 << 20
KERNEL = Kernel(1000, 8192)
PROCESSES = 7
FREEZE_MS, THAW_MS = 5, 1
CPU_PCT, MEMORY_MIB = 0.5, 20
CAUGHT_PCT = 99
BEYOND_CONTEXT_MIB = 64
TASKS, ROOM = 6, 3
PART, SPARE_MIB = 0.30, 1536    # part of the GPU's memory for each; of that, for the context and for rounding
LEAST_WAIT_S = 0.2
UNLIKE = 1.1            # GPU uses that differ by more than a tenth count as different
AT_ONCE = 10            # containers that start together
CONTAINERS = 50
SETUP_S = 8.0
SIM_CONTEXT_MS = 90     # time to make a context on the simulated GPU: the least that an H200 needed


def rounds(settings):
    return 20 if settings.quick else 200


def starts(settings):
    return 100 if settings.quick else 1000


def window_s(settings):
    return 5.0 if settings.quick else 20.0


def seconds_of(settings):
    return 2 * (5 + 0.02 * rounds(settings)) + SETUP_S + window_s(settings) + \
        0.1 * starts(settings) + 40 + 20 * (2 if settings.quick else 6)


class Scene:
    """Boxes on the measured GPU, or on a simulated GPU of their own; the end of `with` ends them."""

    def __init__(self, bench, version, **settings):
        build = bench.machine.build
        self.directory = tempfile.mkdtemp(prefix="allot-boxes-", dir="/tmp")
        self.gpu = None
        socket, sim_dir = None, None
        if bench.machine.sim:
            socket, sim_dir = os.path.join(self.directory, "sim.sock"), build.sim_dir()
            self.gpu = subprocess.Popen(
                [build.program("allot-sim"), "--spec", bench.machine.sim, "--socket", socket,
                 "--linger", "0", "--foreground"])
            wait_until(lambda: os.path.exists(socket), what="the simulated GPU")
        self.boxes = Boxes(version, socket, self.directory, build.program("allotd"), sim_dir,
                           log_level="info", **settings)
        self.boxes.environment["ALLOT_SIM_CONTEXT_MS"] = str(SIM_CONTEXT_MS)
        self.boxes.environment[VISIBLE] = bench.machine.gpu_uuid
        self.load = bench.loads.command(KERNEL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.boxes.close()
        if self.gpu:
            self.gpu.kill()
            self.gpu.wait()
        shutil.rmtree(self.directory)

    def start(self, box, *options):
        return box.start(*self.load, "--report-every", 0, *options)

    def idle(self, box):
        """Starts a process that holds a context and runs one kernel every quarter of an hour."""
        return self.start(box, "--seconds", 900, "--burst", 1, "--period-ms", 900000)


def freeze_and_thaw(bench, version):
    """Pauses and resumes a container through the daemon: the time until all its processes are frozen, or run again."""
    with Scene(bench, version, freezer="off") as scene:
        boxes, box = scene.boxes, scene.boxes.make()
        for _ in range(PROCESSES):
            scene.start(box, "--seconds", 900, "--burst", 1, "--period-ms", 20)
        wait_until(lambda: (boxes.container(box) or {"tasks": 0})["tasks"] == PROCESSES, 60,
                   "the container's GPU work")
        frozen_ms, thawed_ms = [], []
        for _ in range(rounds(bench.settings)):
            for op, times_ms, wanted in (("pause", frozen_ms, True), ("resume", thawed_ms, False)):
                begin = time.monotonic()
                reply = boxes.request(op, name=box.id)
                assert reply["ok"], reply
                while box.is_frozen() != wanted:
                    assert time.monotonic() < begin + 10, f"{op}: not done"
                times_ms.append(1000 * (time.monotonic() - begin))
                time.sleep(0.01)
        for what, times_ms, most in (("freeze", frozen_ms, FREEZE_MS), ("thaw", thawed_ms, THAW_MS)):
            title = f"{what}, {PROCESSES} processes, cgroup {version}"
            bench.result.add(at_most(Row(f"{title}: median", "ms", statistics.median(times_ms)),
                                     bench.bar(most, 2 * most)))
            bench.result.add(Row(f"{title}: 99th percentile", "ms",
                                 sorted(times_ms)[int(0.99 * len(times_ms))]))


def memory_mib(pid):
    """The memory of a process as Pss, which divides shared pages among the processes that share them."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Pss:")) / 1024


def cost(bench, version):
    count = 10 if bench.settings.quick else CONTAINERS
    with Scene(bench, version, freezer="on", freeze_threshold="64MiB",
               census_interval="1s") as scene:
        made = [scene.boxes.make() for _ in range(count)]
        for box in made[1:]:
            scene.idle(box)
        scene.start(made[0], "--seconds", 900)
        wait_until(lambda: sum(c["state"] == "running" for c in scene.boxes.tasks()["containers"])
                   == count, 120, "every container's GPU work")
        time.sleep(SETUP_S)
        pid = scene.boxes.daemon.pid
        before, begin = threads(pid), time.monotonic()
        time.sleep(window_s(bench.settings))
        lasted = time.monotonic() - begin
        used = {}
        for thread, (name, ns) in threads(pid).items():
            used[name] = used.get(name, 0) + ns - before.get(thread, (name, 0))[1]
        pct = {name: ns / lasted / 1e7 for name, ns in used.items()}
        title = f"daemon, {count} containers, one working"
        bench.result.add(at_most(Row(f"{title}: CPU", "%", sum(pct.values())),
                                 bench.bar(CPU_PCT, 2 * CPU_PCT)))
        for name in sorted(pct):
            bench.result.add(Row(f"{title}: CPU of {name}", "%", pct[name]))
        bench.result.add(at_most(Row(f"{title}: memory", "MiB", memory_mib(pid)), MEMORY_MIB))


def caught(bench, version):
    """Starts containers that each request 1 GiB right after making a context. The GPU never has
    that much memory free."""
    with Scene(bench, version, freezer="on", freeze_threshold="100TiB") as scene:
        boxes = scene.boxes
        holder = boxes.make()
        scene.idle(holder)
        wait_until(lambda: boxes.state(holder) in ("starting", "running"), 30, "the holder")
        time.sleep(1)
        held = boxes.container(holder)["devices"][0]["memory_used_bytes"]
        beyond = []
        while len(beyond) < starts(bench.settings):
            made = [boxes.make() for _ in range(AT_ONCE)]
            for box in made:
                scene.start(box, "--seconds", 900, "--mib", 1024)
            ids = {box.id for box in made}
            wait_until(lambda: sum(c["id"] in ids and c["state"] != "ended"
                                   for c in boxes.tasks()["containers"]) == len(ids),
                       60, "the containers' GPU work")
            time.sleep(0.5)     # several readings of the daemon; a container that it missed holds its memory by then
            for container in boxes.tasks()["containers"]:
                if container["id"] in ids:
                    devices = container["devices"]
                    used = devices[0]["memory_used_bytes"] if devices else 0
                    beyond.append((used - held) / MIB if container["state"] == "waiting"
                                  else float("inf"))
            for box in made:
                box.remove()
                boxes.boxes.remove(box)
        count = sum(mib <= BEYOND_CONTEXT_MIB for mib in beyond)
        bench.result.add(at_least(Row(f"caught at the start, of {len(beyond)}, cgroup {version}",
                                      "%", 100 * count / len(beyond)), CAUGHT_PCT))


def run_together(scene, boxes, options):
    """Starts one load in each, and waits for their ends: (seconds, how many succeeded)."""
    begin = time.monotonic()
    jobs = [scene.start(box, *options) for box in boxes]
    statuses = [job.wait(timeout=600) for job in jobs]
    return time.monotonic() - begin, statuses.count(0)


def six(bench, version):
    """The scene of Gil et al.: six containers of equal need, room for three. Those that wait differ in their past GPU use."""
    work_ms = 1000 * (2 if bench.settings.quick else 6)
    for title, setting in (("native", "off"), ("freezer", "on")):
        with Scene(bench, version, freezer=setting) as scene:
            boxes = scene.boxes
            total = boxes.request("list")["devices"][bench.machine.gpu_index]["memory_bytes"] // MIB
            need = int(PART * total)
            boxes.end_daemon()
            with open(boxes.config, "a", encoding="ascii") as file:
                file.write(f"freeze_threshold = {need}MiB\n")
            boxes.start_daemon()
            made = [boxes.make() for _ in range(TASKS)]
            options = ["--seconds", 3600, "--mib", need - SPARE_MIB, "--kernels", work_ms]
            if setting == "off":
                _, ended = run_together(scene, made, options)
                bench.result.add(Row(f"six containers, {title}: came to their end", "of 6", ended,
                                     TASKS))
                continue
            half, _ = run_together(scene, made[:ROOM], options)
            # Among the others, the last one has used the GPU least.
            for i, box in enumerate(made[ROOM:]):
                run_together(scene, [box], ["--seconds", 60, "--kernels", 500 * (TASKS - i)])
            time.sleep(0.5)
            before = {c["id"]: c for c in boxes.tasks()["containers"]}
            lasted, ended = run_together(scene, made, options)
            waited = {c["id"]: c["frozen_s"] - before[c["id"]]["frozen_s"]
                      for c in boxes.tasks()["containers"]}
            bench.result.add(at_least(Row(f"six containers, {title}: came to their end", "of 6",
                                          ended, TASKS), TASKS))
            bench.result.add(at_most(
                Row(f"six containers, {title}: time, of two batches of three", "x",
                    lasted / (2 * half)), bench.bar(1.05, 1.3)))
            report_order(bench, title, {id: c["faded_use_s"] for id, c in before.items()}, waited)


def report_order(bench, title, use_s, waited_s):
    """Judges the order of admission: containers that found room at once do not count, and pairs only if their uses differ."""
    waits = sorted((id for id in use_s if waited_s[id] >= LEAST_WAIT_S), key=use_s.get)
    for id in waits:
        bench.result.add(Row(f"six containers, {title}: {use_s[id]:.1f} s used before: waited", "s",
                             waited_s[id]))
    pairs = [(a, b) for a, b in itertools.combinations(waits, 2)
             if use_s[b] > UNLIKE * use_s[a]]
    kept = sum(waited_s[a] <= waited_s[b] for a, b in pairs)
    bench.result.add(at_least(Row(f"six containers, {title}: pairs that went on by least use", "%",
                                  100 * kept / len(pairs) if pairs else 0), 100))


def freezer(bench):
    versions = [v for v in ("v2", "v1") if why_not(v) is None]
    if not versions:
        bench.result.skip("freezer", why_not("v2"))
        return
    bench.loads.calibrate(KERNEL)
    if not bench.machine.sim:
        # A GPU must not have two daemons.
        bench.machine.idle_tenant.kill()
        bench.machine._wait_for_daemon_to_end()
    try:
        for version in versions:
            freeze_and_thaw(bench, version)
        six(bench, versions[0])
        cost(bench, versions[0])
        caught(bench, versions[0])
    finally:
        if not bench.machine.sim:
            bench.machine.restart([])
