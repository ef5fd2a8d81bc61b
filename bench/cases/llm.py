"""LLM servers, and a training, at once on one GPU: time-sliced by the hardware, under MPS without allot, and as tenants.

A scene is a set of programs that run together; a way is how they share the GPU. The processes of a way start anew for each run,
because two starts of the same program differ by up to a twentieth. Step: a decode step, from its launch until its tokens are on
the host. First token: the time from a request's arrival to its first token. Share: the time that the work done (prefills and
steps) would take alone on the GPU, over the time that passed."""

import argparse
import contextlib
import json
import os
import statistics
import tempfile
import time
from dataclasses import dataclass

from harness import plot, stats
from harness.job import Failed
from harness.load import LATE_S
from harness.mps import plain_mps, threads
from harness.result import Row, at_least, at_most
from harness.sampled import sampled
from harness.trainer import MODEL_S, Trainer, ready, series_of

from .llm_figures import MS, server_figures, share_of

TAIL_S = 0.3            # for closed loops: all members still run when the window ends
OPEN_TAIL_S = 2.0       # for open loops: requests that arrived in the window may still be answered
LEAD_S = 0.5            # until the common start
# One of two servers goes idle: after IDLE_S the other must have its part, too. RETURN_S after it comes back, the first must
# have its own part again.
IDLE_S, RETURN_S = 0.05, 0.02
START_S = 9             # for starting a way's processes: PyTorch, weights, graphs
# Reading the GPU's use while a program runs alone: time between two values, and how many values at the end are left out.
SAMPLE_S, AFTER = 0.1, 5
# For ways that are compared in turns: windows of each way (with --quick: QUICK_TURNS), their length, and the time before each.
TURNS, QUICK_TURNS, TURN_S, TURN_SETTLE_S, TURN_LEAD_S = 24, 2, 0.5, 0.1, 0.15


# ---- what runs

@dataclass(frozen=True)
class LlmServer:
    name: str
    cores_pct: int
    geometry: str
    slots: int
    prompt: int
    tokens: int = 64
    is_eager: bool = False
    memory: str = "16GiB"
    priority: int = 0

    def start(self, bench, name, options, environment):
        more = ["--geometry", self.geometry, "--slots", self.slots, "--prompt", self.prompt, "--tokens", self.tokens,
                *(["--eager"] if self.is_eager else [])]
        return Trainer(bench, name, options, list(map(str, more)), environment, bench.settings.llm_server)

    def prepare(self, process):
        """Nothing to do: a server is warm as soon as it is ready."""

    def say(self, process, seconds, at, path, arrivals=()):
        process.say("serve", f"{seconds:.3f}", f"{at:.3f}", path, *arrivals)

    def lines(self, answer, path):
        """The server's events."""
        if answer["late_s"] > LATE_S:
            raise Failed(f"{self.name}: began {answer['late_s']:.2f} s late")
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def figures(self, answer, _, path, begin, end):
        return server_figures(self.lines(answer, path), begin, end)


@dataclass(frozen=True)
class Training:
    name: str
    cores_pct: int
    model: str
    batch: int
    sync_every: int
    memory: str = "24GiB"
    priority: int = 0

    def start(self, bench, name, options, environment):
        return Trainer(bench, name, options, environment=environment)

    def prepare(self, process):
        answer = process.ask("model", self.model, self.batch)
        if "error" in answer:
            raise Failed(f"{self.name}: {answer['error']}")
        process.ask("sync", self.sync_every)

    def say(self, process, seconds, at, *_):
        process.say("record", f"{seconds:.3f}", f"{at:.3f}")

    def figures(self, answer, at, _, begin, end):
        rate = series_of(answer, at).rate(begin, end)
        return {"steps_s": rate, "train_ms": MS / rate}


# ---- the scenes

BESIDE = (LlmServer("llm", 40, "4b", 2, 512, priority=10), Training("train", 60, "resnet18", 128, 10))
TWO_EAGER = tuple(LlmServer(f"eager{i}", 50, "1b", 4, 128, is_eager=True, memory="12GiB") for i in (1, 2))


@dataclass(frozen=True)
class Scene:
    about: str
    members: tuple
    load_pct: int = None    # None: closed loop; else requests arrive at random, at this part of one server's rate alone
    has_pause: bool = False     # the second of two servers is idle, comes, is idle again and comes back
    by_turns: bool = False      # ways that slice the GPU by time are compared in turns


def two_4b(slots):
    return tuple(LlmServer(f"llm{i}", 50, "4b", slots, 512) for i in (1, 2))


TWO_4B = two_4b(8)

SCENES = {
    "servers": Scene("two LLM servers (4B, CUDA graph, 8 requests each), closed loop", TWO_4B),
    "open30": Scene("two LLM servers, Poisson arrivals, 30 % of capacity", TWO_4B, 30),
    "open60": Scene("two LLM servers, Poisson arrivals, 60 % of capacity", TWO_4B, 60),
    "open90": Scene("two LLM servers, Poisson arrivals, 90 % of capacity", TWO_4B, 90),
    "pause": Scene("two LLM servers, one of which goes idle and comes back", TWO_4B, has_pause=True),
    "slots1": Scene("two LLM servers, 1 request each, closed loop", two_4b(1)),
    "slots2": Scene("two LLM servers, 2 requests each, closed loop", two_4b(2)),
    "slots32": Scene("two LLM servers, 32 requests each, closed loop", two_4b(32)),
    "training": Scene("an LLM server (4B, 2 requests, 40 %) beside ResNet18 (batch 128, 60 %)", BESIDE),
    "eager": Scene("two eager decoders (1B, 4 requests each), closed loop", TWO_EAGER, by_turns=True),
}
DEFAULT_SCENES = ",".join(SCENES)


# ---- the ways

@dataclass(frozen=True)
class Way:
    about: str
    sharing: str = None         # options of allot run; None: not a tenant
    limit_pct: int = None       # None: the same as the guarantee
    is_mps: bool = False        # without allot
    is_split: bool = False      # by SMs
    with_priority: bool = False

    def options(self, member):
        """The options of allot run, or None."""
        if not self.sharing:
            return None
        return ["--memory", member.memory, "--sharing", self.sharing, "--cores", str(member.cores_pct), "--cores-limit",
                str(self.limit_pct or member.cores_pct),
                *(["--priority", str(member.priority)] if self.with_priority and member.priority else [])]

    def environment(self, member):
        return threads(member.cores_pct) if self.is_split else None

    def differs_for(self, members):
        """Whether this way differs from the one without priorities."""
        return not self.with_priority or any(member.priority for member in members)


ALONE = "alone"
WAYS = {
    ALONE: Way("each alone, natively"),
    "native": Way("native time slicing"),
    "mps": Way("plain MPS, no limits", is_mps=True),
    "mps-split": Way("plain MPS, SMs split", is_mps=True, is_split=True),
    "turns": Way("allot, by time", "time", 100),
    "turns-caps": Way("allot, by time, caps", "time"),
    "turns-priority": Way("allot, by time, priority", "time", 100, with_priority=True),
    "caps": Way("allot, in space, caps", "space"),
    "lend": Way("allot, in space, lending", "space", 100),
    "lend-priority": Way("allot, in space, lending, priority", "space", 100, with_priority=True),
}
DEFAULT_WAYS = ",".join(WAYS)


def parse_names(text, known, what):
    names = text.split(",")
    for name in names:
        if name not in known:
            raise argparse.ArgumentTypeError(f"'{name}': no such {what}; of {', '.join(known)}")
    return tuple(dict.fromkeys(names))


def parse_scenes(text):
    return parse_names(text, SCENES, "scene")


def parse_ways(text):
    return parse_names(text, WAYS, "way")


def by_turns(ways, names):
    """The ways that are compared in turns in these scenes: those that share by time, without MPS. Empty if only one is left."""
    found = [way for way in ways if SCENES[names[0]].by_turns and not WAYS[way].is_mps and WAYS[way].sharing != "space"
             and not WAYS[way].with_priority]
    return found if len(found) > 1 else []


def groups(scenes):
    """[(members, names of scenes)]: scenes with the same members are measured with the same processes."""
    found = {}
    for name in scenes:
        found.setdefault(SCENES[name].members, []).append(name)
    return list(found.items())


def run_seconds(settings, members, names):
    """About how long one run of every way of these scenes takes."""
    more_s = settings.settle_s + LEAD_S + 1
    ways = [way for way in settings.ways if WAYS[way].differs_for(members) and way != ALONE]
    windows_s = sum(more_s + settings.seconds * (4 if SCENES[name].has_pause else 1) for name in names)
    alone_s = (ALONE in settings.ways) * len(set_of(members)) * (more_s + settings.seconds)
    turns_s = len(by_turns(ways, names)) * (START_S + turns_of(settings) * (TURN_LEAD_S + TURN_SETTLE_S + TURN_S + TAIL_S))
    return (len(ways) - len(by_turns(ways, names))) * (START_S + windows_s) + turns_s + alone_s


def seconds_of(settings):
    return settings.runs * sum(run_seconds(settings, members, names) for members, names in groups(settings.scenes))


# ---- bars

# (scene, way, figure, way to compare with, "least" or "most", bar). They apply only on a real GPU.
BARS = [
    ("servers", "turns", "sum", "native", "least", 1.0),
    ("servers", "turns", "step_p99", "native", "most", 1.25),
    ("servers", "caps", "sum", "mps-split", "least", 0.99),
    ("servers", "caps", "step_p99", "mps-split", "most", 1.05),
    ("servers", "lend", "sum", "mps", "least", 0.99),
    ("servers", "lend", "step_p99", "mps", "most", 1.1),
    ("training", "turns-priority", "of_alone", None, "least", 1.15),
    ("training", "caps", "tokens_s", "mps-split", "least", 0.98),
    ("training", "caps", "steps_s", "mps-split", "least", 0.98),
    ("training", "caps", "step_p99", "mps-split", "most", 1.1),
    ("training", "lend", "of_alone", "mps", "least", 0.99),
    ("training", "lend", "step_p99", "mps", "most", 1.1),
    ("open60", "turns", "first_p99", "native", "most", 1.2),
    ("open60", "lend", "first_p99", "mps", "most", 1.2),
    ("pause", "turns", "apart", None, "least", 0.98),
    ("pause", "turns", "returned", None, "least", 0.98),
    ("pause", "lend", "apart", None, "least", 0.98),
    ("pause", "lend", "returned", None, "least", 0.98),
    ("eager", "turns", "sum", "native", "least", 0.98),
    ("eager", "lend", "sum", "native", "least", 0.98),
]
IDEAL_P99 = 1.3         # of (step alone / share), of the server beside a training
LABELS = {"sum": "sum", "of_alone": "work of all against alone", "tokens_s": "tokens/s", "steps_s": "training steps/s",
          "train_ms": "training step", "step_p50": "step p50", "step_p99": "step p99", "step_max": "step max",
          "first_p50": "first token p50", "first_p99": "first token p99", "unserved": "without a first token",
          "prefill_p50": "prefill p50", "busy": "share at its own pace", "share": "share", "share_apart": "share while the other is idle",
          "step_alone": "mean step alone", "step_apart": "mean step while the other is idle",
          "step_before": "mean step", "step_back": "mean step once it is back",
          "apart": "decoding while the other is idle, against alone (until 2026-11-28: all work)",
          "share_back": "share once it is back", "gpu_busy": "GPU at work, by NVML", "returned": "decoding once it is back, against before (until 2026-11-28: all work)"}
UNITS = {"sum": "tok/s", "of_alone": "x", "tokens_s": "tok/s", "steps_s": "1/s", "unserved": "count",
         "busy": "x", "gpu_busy": "%", "share": "x", "share_apart": "x", "share_back": "x", "apart": "x", "returned": "x"}


def together(figures, alone):
    """Combines the figures of all members in one run: the sum of tokens, and the worst of latencies. With a pause, it compares
    the decoding speed of the server that stays with that alone, and the speed of the one that comes back with that before its
    pause. Prefills are not compared, because the CPU limits them and their times vary by up to a half."""
    if "share" in figures[0]:
        stays, returns = figures
        return {"apart": stays["step_alone"] / stays["step_apart"], "returned": returns["step_before"] / returns["step_back"]}
    servers = [f for f in figures if "tokens_s" in f]
    found = {"sum": sum(f["tokens_s"] for f in servers)}
    if alone:
        found["of_alone"] = sum(work(f) / work(a) for f, a in zip(figures, alone))
    for key in ("step_p50", "step_p99", "step_max", "first_p50", "first_p99", "unserved"):
        found[key] = max(f[key] for f in servers)
    found["tokens_s"] = min(f["tokens_s"] for f in servers)
    for f in figures:
        found.update({key: f[key] for key in ("steps_s", "train_ms") if key in f})
    return found


def work(figures):
    return figures["tokens_s"] if "tokens_s" in figures else figures["steps_s"]


def medians(runs):
    """The median of each figure over runs."""
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def means(windows):
    """The mean of each figure over windows."""
    return {key: statistics.mean(window[key] for window in windows) for key in windows[0]}


# ---- measuring

@contextlib.contextmanager
def started(bench, way, members):
    """The processes of a way, warm."""
    with plain_mps(bench.machine) if WAYS[way].is_mps else contextlib.nullcontext():
        processes = []
        try:
            for member in members:
                processes.append(member.start(bench, f"{way}-{member.name}", WAYS[way].options(member),
                                              WAYS[way].environment(member)))
            ready(processes)
            for member, process in zip(members, processes):
                member.prepare(process)
            yield processes
        finally:
            for process in processes:
                process.end()
            bench.machine.settle()


def window(bench, members, processes, arrivals=None, seconds=None, settle_s=None, lead_s=LEAD_S):
    """Measures a common window and returns the figures of each member. arrivals: (rate, seed) of each member; None: closed
    loops. seconds and settle_s: None means the value in the settings."""
    seconds = bench.settings.seconds if seconds is None else seconds
    settle_s = bench.settings.settle_s if settle_s is None else settle_s
    whole_s = settle_s + seconds + (OPEN_TAIL_S if arrivals else TAIL_S)
    with tempfile.TemporaryDirectory(prefix="allot-llm-") as folder:
        paths = [os.path.join(folder, member.name) for member in members]
        at = round(time.time() + lead_s, 3)
        for i, (member, process) in enumerate(zip(members, processes)):
            member.say(process, whole_s, at, paths[i], arrivals[i] if arrivals else ())
        answers = [process.answer(whole_s + MODEL_S) for process in processes]
        return [member.figures(answer, at, path, settle_s, settle_s + seconds)
                for member, answer, path in zip(members, answers, paths)]


def window_with_pause(bench, members, processes):
    """Runs four windows: the first server alone, both, the first alone, both. The speed alone is measured in the same
    processes, because the CPU limits prefills, and their times differ by up to a half between two starts."""
    settle_s, seconds = bench.settings.settle_s, bench.settings.seconds
    comes, idle, back, end = (settle_s + n * seconds for n in (1, 2, 3, 4))
    with tempfile.TemporaryDirectory(prefix="allot-llm-") as folder:
        paths = [os.path.join(folder, name) for name in ("stays", "before", "after")]
        at = round(time.time() + LEAD_S, 3)
        (stays, returns), (first, second) = members, processes
        stays.say(first, end + TAIL_S, at, paths[0])
        returns.say(second, seconds, at + comes, paths[1])
        returns.say(second, seconds + TAIL_S, at + back, paths[2])
        answers = [process.answer(end + MODEL_S) for process in (first, second, second)]
        whole, before, after = (stays.lines(answer, path) for answer, path in zip(answers, paths))
    usual = server_figures(whole, settle_s, comes)
    return [{"share": share_of(whole, comes + IDLE_S, idle, usual), "share_apart": share_of(whole, idle + IDLE_S, back, usual),
             "busy": usual["busy"], "step_alone": mean_step_ms(whole, settle_s, comes),
             "step_apart": mean_step_ms(whole, idle + IDLE_S, back)},
            {"share": share_of(before, RETURN_S, seconds, usual), "share_back": share_of(after, RETURN_S, seconds, usual),
             "step_before": mean_step_ms(before, RETURN_S, seconds), "step_back": mean_step_ms(after, RETURN_S, seconds)}]


def mean_step_ms(lines, begin, end):
    """The mean time of the decode steps that began between `begin` and `end`."""
    took_ms = [MS * (until - since) for since, until in (line["step"] for line in lines if "step" in line) if begin <= since < end]
    if not took_ms:
        raise Failed("no step in a window; take a longer one (--seconds)")
    return statistics.mean(took_ms)


def set_of(members):
    """One member of each group of equal members."""
    return list({kind(member): member for member in reversed(members)}.values())[::-1]


def kind(member):
    """A key that is equal for members that do the same work."""
    return tuple(value for key, value in vars(member).items() if key != "name")


def measure_alone(bench, members, processes, alone):
    """Runs one member of each kind while the others are idle, and adds its figures to alone[kind], with the part of the time in
    which NVML saw the GPU at work."""
    for member, process in zip(members, processes):
        if kind(member) not in {kind(other) for other in members[:members.index(member)]}:
            with sampled(bench.machine.nvml.utilization_pct, SAMPLE_S, LEAD_S + bench.settings.settle_s) as busy_pct:
                figures, = window(bench, [member], [process])
            # The last values may be of the time after the window.
            alone.setdefault(kind(member), []).append({**figures, "gpu_busy": statistics.mean(busy_pct[:-AFTER] or [0])})


def most_of_alone(members, figures):
    """The most work of all against alone that is possible by taking turns, if the GPU never idled and each had its share of the
    time: what a member does alone takes only gpu_busy of the time."""
    return sum(min(member.cores_pct / max(figure["gpu_busy"], 1), 1) for member, figure in zip(members, figures))


def turns_of(settings):
    return QUICK_TURNS if settings.quick else TURNS


def measure_by_turns(bench, ways, members, names, found, alone):
    """One run of these ways: their processes all stay alive and work in turns. Returns the means of their windows. The speed of
    a process that its CPU limits varies by up to a half within seconds, so only ways that run in turns can be compared."""
    windows = {way: [] for way in ways}
    with contextlib.ExitStack() as stack:
        processes = {way: stack.enter_context(started(bench, way, members)) for way in ways}
        if ALONE in bench.settings.ways and "native" in ways:
            measure_alone(bench, members, processes["native"], alone)
        for turn in range(turns_of(bench.settings)):
            for way in ways[::-1] if turn % 2 else ways:
                windows[way].append(window(bench, members, processes[way], None, TURN_S, TURN_SETTLE_S, TURN_LEAD_S))
    for name in names:
        for way in ways:
            found[name].setdefault(way, []).append([means(figures) for figures in zip(*windows[way])])


def arrivals_of(scene, run, alone, seed):
    """(rate, seed) of each member, from its first run alone; the same in every way. `seed`: that of the bench."""
    if scene.load_pct is None:
        return None
    found = []
    for i, member in enumerate(scene.members):
        capacity = alone[kind(member)][0]["tokens_s"] / member.tokens / len(scene.members)
        found.append((f"{capacity * scene.load_pct / 100:.4f}", 10000 * seed + 100 * run + i + 1))
    return found


def measure_run(bench, way, members, names, run, found, alone):
    """Adds a run's figures to found[scene][way] and, if requested, to `alone`."""
    with started(bench, way, members) as processes:
        if way == "native" and ALONE in bench.settings.ways:
            measure_alone(bench, members, processes, alone)
        for name in names if way in bench.settings.ways else ():
            scene = SCENES[name]
            if scene.load_pct is not None and not alone:
                continue
            runs = found[name].setdefault(way, [])
            if scene.has_pause:
                runs.append(window_with_pause(bench, members, processes))
            else:
                runs.append(window(bench, members, processes, arrivals_of(scene, run, alone, bench.settings.seed)))


def report(members, names, found, alone):
    """Prints the figures of all ways so far."""
    for member in set_of(members) if alone else ():
        print(f"{'  ' + member.name + ' alone':24} {text_of(alone[kind(member)])}", flush=True)
    usual = usual_of(members, alone)
    for name in names:
        for way, runs in found[name].items():
            print(f"{'  ' + name + ', ' + way:24} {text_of([together(figures, usual) for figures in runs])}"
                  f"{each(runs)}", flush=True)


def usual_of(members, alone):
    return [medians(alone[kind(member)]) for member in members] if alone else None


def text_of(runs):
    """The figures of a way on one line: the median and, for several runs, the least and the most."""
    parts = []
    for key, label in (("sum", "sum"), ("tokens_s", "tok/s"), ("of_alone", "of alone"), ("step_p50", "p50"),
                       ("step_p99", "p99"), ("step_max", "max"), ("first_p50", "first p50"), ("first_p99", "p99"),
                       ("train_ms", "train ms"), ("apart", "apart"), ("returned", "back"), ("unserved", "unserved")):
        values = [run[key] for run in runs if key in run]
        if not values or (key == "tokens_s" and "sum" in runs[0]) or (key == "unserved" and not any(values)):
            continue
        spread = f" ({min(values):.4g}-{max(values):.4g})" if len(values) > 1 else ""
        parts.append(f"{label} {statistics.median(values):.4g}{spread}")
    return "  ".join(parts)


def each(runs):
    """Tokens a second of each server."""
    rates = [statistics.median(values) for values in
             zip(*([f["tokens_s"] for f in figures if "tokens_s" in f] for figures in runs))]
    return f"  each {', '.join(f'{rate:.4g}' for rate in rates)}" if len(rates) > 1 else ""


def add_rows(bench, name, members, ways, alone):
    """Adds the rows of a scene: every figure, with its bars."""
    usual = usual_of(members, alone)
    runs_of = {way: [together(figures, usual) for figures in runs] for way, runs in ways.items() if runs}
    labelled = [(f"{name}, {way}", runs) for way, runs in runs_of.items()]
    for way, runs in ways.items():
        labelled += [(f"{name}, {way}, {member.name}", [figures[i] for figures in runs])
                     for i, member in enumerate(members) if runs]
    labelled += [(f"{name}, alone, {member.name}", alone[kind(member)]) for member in members if alone]
    for label, runs in labelled:
        for key in runs[0]:
            values = [run[key] for run in runs]
            bench.result.rows.append(Row(f"{label}: {LABELS[key]}", UNITS.get(key, "ms"), statistics.median(values),
                                         runs=values))
    if alone:
        values = [most_of_alone(members, figures) for figures in zip(*(alone[kind(member)] for member in members))]
        bench.result.rows.append(Row(f"{name}: the most work of all against alone, by turns", "x", statistics.median(values),
                                     runs=values))
    if not bench.machine.sim:
        for row in judged(name, members, {way: medians(runs) for way, runs in runs_of.items()}, usual, runs_of):
            bench.result.add(row)


def error_of(runs, others, key):
    """The standard error of the median of a figure over these runs, divided by that of the same run in `others` if these are
    given. None with fewer than two runs."""
    pairs = zip(runs, others) if others else ((run, {key: 1}) for run in runs)
    ratios = [run[key] / other[key] for run, other in pairs]
    return stats.error_of_median(ratios) if len(ratios) > 1 else None


def judged(name, members, found, usual, runs_of=None):
    """Adds the rows that have a bar, for the ways that were measured. `found`: medians; `runs_of`: {way: figures of each run}."""
    runs_of = runs_of or {}
    for scene, way, figure, other, side, bar in BARS:
        if scene != name or way not in found or (other and other not in found) or figure not in found[way]:
            continue
        got = found[way][figure] / (found[other][figure] if other else 1)
        row = Row(f"{name}, {way}: {LABELS[figure]}" + (f" over {other}'s" if other else ""), "x", got, asked=1,
                  error=error_of(runs_of.get(way, ()), runs_of.get(other), figure))
        yield (at_least if side == "least" else at_most)(row, bar)
    if name == "training" and "turns-priority" in found and usual:
        ideal = usual[0]["step_p99"] / (members[0].cores_pct / 100)
        error = error_of(runs_of.get("turns-priority", ()), None, "step_p99")
        yield at_most(Row(f"{name}, turns-priority: step p99 over (step alone / share)", "x",
                          found["turns-priority"]["step_p99"] / ideal, asked=1, error=error and error / ideal), IDEAL_P99)


def add_charts(bench, name):
    for key, what in (("sum", "tokens a second of all servers"), ("step_p99", "step, 99th percentile, of the slower server"),
                      ("first_p99", "first token, 99th percentile")):
        rows = [Row(way, UNITS.get(key, "ms"), row.got) for way in bench.settings.ways
                for row in bench.result.rows if row.name == f"{name}, {way}: {LABELS[key]}"]
        if rows:
            bench.result.charts.append(lambda stem, key=key, what=what, rows=rows: plot.bars(
                f"{stem}-{name}-{key.replace('_', '-')}.svg", f"{SCENES[name].about}: {what}", rows, rows[0].unit,
                {**plot.LABELS, "got": "median of the runs"}))


class Group:
    """Scenes with the same members, and their measurements."""

    def __init__(self, members, names):
        self.members, self.names = members, names
        self.found = {name: {} for name in names}       # [way]: for each run, the figures of each member
        self.alone = {}
        self.broken = []


def measure_ways(bench, group, run):
    """Runs every way once, so that the runs of all ways spread evenly over the bench's time."""
    ways = list(dict.fromkeys("native" if way == ALONE else way for way in bench.settings.ways))
    in_turns = by_turns(ways, group.names)
    if in_turns and not set(in_turns) & set(group.broken):
        try:
            measure_by_turns(bench, in_turns, group.members, group.names, group.found, group.alone)
        except Failed as error:
            bench.result.skip(f"{', '.join(group.names)}: {', '.join(in_turns)}", str(error))
            group.broken += in_turns
    ways = [way for way in ways if way not in in_turns]
    for way in sorted(ways, key=lambda way: way != "native"):     # the figures alone must be known first
        if way in group.broken or not WAYS[way].differs_for(group.members):
            continue
        try:
            measure_run(bench, way, group.members, group.names, run, group.found, group.alone)
        except Failed as error:
            bench.result.skip(f"{', '.join(group.names)}: {way}", str(error))
            group.broken.append(way)


def llm(bench):
    settings = bench.settings
    if settings.scenes != parse_scenes(DEFAULT_SCENES):
        bench.result.scenes = settings.scenes
    if any(SCENES[name].load_pct is not None for name in settings.scenes):
        bench.result.seed = settings.seed
    chosen = [Group(members, names) for members, names in groups(settings.scenes)]
    for group in chosen:
        for name in group.names:
            print(f"-- {name}: {SCENES[name].about}", flush=True)
            if SCENES[name].load_pct is not None and ALONE not in settings.ways:
                bench.result.skip(name, f"it is measured against one server alone: --ways {ALONE},..")
    cells = [(run, group) for run in range(settings.runs) for group in chosen]
    for run, group in bench.cells(cells, lambda cell: run_seconds(settings, cell[1].members, cell[1].names)):
        print(f"run {run + 1} of {settings.runs}: {', '.join(group.names)}", flush=True)
        measure_ways(bench, group, run)
    for group in chosen:
        report(group.members, group.names, group.found, group.alone)
        for name in group.names:
            add_rows(bench, name, group.members, group.found[name], group.alone)
            add_charts(bench, name)
    if broken := [way for group in chosen for way in group.broken]:
        raise Failed(f"some ways failed: {', '.join(broken)}")
