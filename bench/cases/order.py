"""Tasks that together need more memory than the GPU has, as in the paper of Gil et al.: six tasks of equal need start
together, the GPU has room for three, and each does the same amount of work."""

import itertools
import time
from dataclasses import dataclass, field

from harness import plot
from harness.job import Failed
from harness.load import Kernel
from harness.result import Row, at_least, at_most
from harness.room import Room
from harness.sampled import sampled

TASKS = 6
ROOM = 3
PART = 0.30                     # of the GPU's memory, for each task
SPARE_MIB = 1536                # of that, for the context and the driver's rounding
SMALL_SPARE_MIB = 768           # the same with less GPU memory; with more, four tasks would fit
SWAP_GPU_MIB = 48 << 10         # at most this much, because the scene makes and page-locks all six arenas
ARENA_MIB = 64                  # arena size beyond the memory that moves
KERNEL = Kernel(1000, 8192)
SAMPLE_S = 0.05
MIB = 1 << 20

COLORS = {"waits": "#d9dde2", "runs": "#1f6fb4", "moves": "#e0a030", "fails": "#c0504d"}
PLACES = {"out": "waits", "short": "waits", "leaving": "moves", "returning": "moves"}


@dataclass
class Task:
    name: str
    job: object
    begin: float
    admitted: float = None      # when it was first seen not to wait any more
    end: float = None
    status: int = None
    waited: bool = False
    spans: list = field(default_factory=list)   # for plot.spans(), from `begin` on


@dataclass
class Batch:
    tasks: list
    used: list = field(default_factory=list)    # bytes of GPU memory, one sample each SAMPLE_S

    @property
    def total_s(self):
        return max(task.end for task in self.tasks) - min(task.begin for task in self.tasks)

    @property
    def ended(self):
        return [task for task in self.tasks if task.status == 0]


def work_s(settings):
    """The time that one task's work takes alone."""
    return 2.0 if settings.quick else 6.0


def seconds_of(settings):
    each = work_s(settings)
    return 45 + 3 * ROOM * each + 2.2 * TASKS * each + 2.3 * TASKS * each


class Scene:
    """Six tasks. Each needs PART of `gpu_mib`; spare_mib of that is for memory that it does not allocate itself."""

    def __init__(self, bench, gpu_mib, spare_mib=SPARE_MIB):
        self.bench = bench
        self.machine = bench.machine
        self.need_mib = int(PART * gpu_mib)
        self.spare_mib = spare_mib

    def swap(self):
        return ["--on-full", "swap", "--swap-arena", f"{self.need_mib - self.spare_mib + ARENA_MIB}MiB"]

    def command(self, parts=1.0, mib=None):
        kernels = int(parts * work_s(self.bench.settings) * 1e6 / KERNEL.cost_us)
        return self.bench.loads.command(
            KERNEL, "--kernels", str(kernels), "--seconds", "3600", "--report-every", "0",
            "--mib", str(self.need_mib - self.spare_mib if mib is None else mib))

    def start(self, name, way, parts=1.0, mib=None, memory_mib=None):
        options = None
        if way is not None:
            options = ["--memory", f"{memory_mib or self.need_mib}MiB", *way]
        return Task(name, self.machine.start(name, self.command(parts, mib), options), time.time())

    def waiting(self):
        """{name: tenant} of the tasks that wait for memory."""
        return {tenant["name"]: tenant for tenant in self.machine.ps()["tenants"]
                if tenant["state"] == "queued"}

    def states(self):
        """{name: one of COLORS} of the tasks that are tenants."""
        def state(tenant):
            place = tenant["swap"]["state"] if tenant.get("swap") else "in"
            return "waits" if tenant["state"] == "queued" else PLACES.get(place, "runs")
        return {tenant["name"]: state(tenant) for tenant in self.machine.ps()["tenants"]}

    def watch(self, tasks, limit_s, are_tenants):
        """Watches the tasks until they have ended."""
        with sampled(lambda: self.machine.nvml.memory().used, SAMPLE_S) as used:
            deadline = time.monotonic() + limit_s
            while any(task.status is None for task in tasks):
                if time.monotonic() > deadline:
                    late = [task.name for task in tasks if task.status is None]
                    raise Failed(f"not at their ends within {limit_s:g} s: {', '.join(late)}")
                self.update(tasks, self.states() if are_tenants else {})
                time.sleep(SAMPLE_S)
        return Batch(tasks, used)

    @staticmethod
    def update(tasks, states):
        now = time.time()
        for task in tasks:
            state = states.get(task.name, "runs")
            if task.status is None:
                plot.note(task.spans, now - task.begin, COLORS[state])
            if state == "waits":
                task.waited = True
            elif task.admitted is None and task.waited:
                task.admitted = now
            if task.status is None and task.job.process.poll() is not None:
                task.status = task.job.wait(5)
                task.end = now
                if task.status != 0:
                    plot.note(task.spans, now - task.begin, COLORS["fails"])

    def run(self, label, way, count):
        limit_s = 60 + 4 * TASKS * work_s(self.bench.settings)
        tasks = [self.start(f"{label}-{i + 1}", way) for i in range(count)]
        batch = self.watch(tasks, limit_s, way is not None)
        self.machine.settle()
        return batch


def report(bench, label, batch, native, batch_s, quick_most=1.15):
    add = bench.result.add
    ends = Row(f"{label}: tasks that came to their end", "of 6", len(batch.ended), TASKS)
    add(ends if native is None else at_least(ends, TASKS))
    for i, task in enumerate(batch.tasks):
        before = native.tasks[i] if native else None
        add(Row(f"{label}, task {i + 1}: {'ended' if task.status == 0 else 'FAILED'} after", "s",
                task.end - task.begin,
                native=before.end - before.begin if before and before.status == 0 else None))
    if native is None:
        return
    add(Row(f"{label}: all six together", "s", batch.total_s, native=2 * batch_s))
    add(at_most(Row(f"{label}: time over two native batches of three", "x",
                    batch.total_s / (2 * batch_s)), bench.bar(1.05, quick_most)))
    add(Row(f"{label}: the most memory held on the card", "% of it", 100 * max(batch.used) /
            bench.machine.device()["memory_bytes"]))


def by_use(scene, label, way):
    """Tasks that have used the GPU before: the one with the least use is admitted first. The order of their use differs from
    the order in which they ask."""
    bench, machine = scene.bench, scene.machine
    pasts = [4, 1, 6, 2, 5, 3]
    names = [f"{label}-past-{i + 1}" for i in range(TASKS)]
    for name, past in zip(names, pasts):
        scene.start(name, way, parts=0.1 * past, mib=1).job.check(120)
    total_mib = machine.device()["memory_bytes"] // MIB
    holder = scene.start("holder", way, parts=1000, memory_mib=total_mib - 256)
    deadline = time.monotonic() + 60
    while not any(tenant["name"] == "holder" and tenant["processes"] and
                  tenant["devices"][0]["memory_used_bytes"] > scene.need_mib * MIB // 2
                  for tenant in machine.ps()["tenants"]):
        if time.monotonic() > deadline:
            raise Failed("the task that occupies the memory did not start")
        time.sleep(SAMPLE_S)
    tasks = [scene.start(name, way, parts=0.2) for name in names]
    while len(scene.waiting()) < TASKS:
        if time.monotonic() > deadline:
            raise Failed(f"only {len(scene.waiting())} of {TASKS} wait")
        time.sleep(SAMPLE_S)
    waiting = scene.waiting()
    use = {name: waiting[name]["use_s"] for name in names}
    for task in tasks:
        task.waited = True
    holder.job.kill()
    scene.watch(tasks, 120, True)
    pairs = list(itertools.combinations(sorted(tasks, key=lambda task: use[task.name]), 2))
    kept = sum(a.admitted <= b.admitted for a, b in pairs)
    bench.result.add(at_least(Row(f"{label}: pairs let in by least use first", "%",
                                  100 * kept / len(pairs), 100), 100))
    bench.result.add(Row(f"{label}: use before, the least of the six", "s", min(use.values())))
    bench.result.add(Row(f"{label}: use before, the most of the six", "s", max(use.values())))


def spans_of(batch):
    begin = min(task.begin for task in batch.tasks)
    return [(task.name, [(a + task.begin - begin, b + task.begin - begin, color)
                         for a, b, color in task.spans],
             f"{task.end - task.begin:.1f} s" if task.status == 0 else "out of memory")
            for task in batch.tasks]


def ideal_s(bench, scene):
    """The time of three tasks that fit together."""
    ideal = scene.run("batch", None, ROOM)
    if len(ideal.ended) != ROOM:
        raise Failed(f"only {len(ideal.ended)} of {ROOM} fit natively")
    return ideal.total_s


def order(bench):
    machine = bench.machine
    bench.loads.calibrate(KERNEL)
    total = machine.device()["memory_bytes"]
    scene = Scene(bench, total // MIB)
    batch_s = ideal_s(bench, scene)
    bench.result.add(Row("native: one batch of three", "s", batch_s))
    batches = {"native": scene.run("native", None, TASKS)}
    report(bench, "native", batches["native"], None, batch_s)
    refused = machine.refuses("--on-full", "wait")
    if refused:
        bench.result.skip("wait", refused)
    else:
        way = ["--on-full", "wait"]
        batches["wait"] = scene.run("wait", way, TASKS)
        report(bench, "wait", batches["wait"], batches["native"], batch_s)
        by_use(scene, "wait", way)
        machine.stop_all()
    refused = machine.refuses("--on-full", "swap")
    if refused:
        bench.result.skip("swap", refused)
    else:
        # The arenas of all six tasks must fit into host memory, so a part of the GPU's memory is occupied.
        room = Room(bench, TASKS * PART, SWAP_GPU_MIB)
        bench.result.add(Row("swap: the card, of which each needs 30 %", "GiB", room.mib / 1024))
        scene = Scene(bench, room.mib, SMALL_SPARE_MIB)
        batch_s = ideal_s(bench, scene)
        batches["swap"] = scene.run("swap", scene.swap(), TASKS)
        report(bench, "swap", batches["swap"], batches["native"], batch_s, 2)
        machine.stop_all()
    groups = {label: spans_of(batch) for label, batch in batches.items()}
    memory = {label: [100 * used / total for used in batch.used]
              for label, batch in batches.items()}
    bench.result.charts.append(lambda stem: plot.spans(
        stem + ".svg", "Six tasks, memory for three: waiting, running, moving, failed", groups))
    bench.result.charts.append(lambda stem: plot.lines(
        stem + "-memory.svg", "The GPU's memory, six tasks that need 30 % each", memory, {},
        "% held", f"{SAMPLE_S:g} s steps"))
