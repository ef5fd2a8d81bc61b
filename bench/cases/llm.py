"""LLM servers, and a training, at once on one GPU: as the hardware slices it, under MPS without allot, and as tenants.

A scene is what runs together; a way is how the GPU is shared. The processes of a way start anew for each run: two starts of
the same differ by up to a twentieth. Step: a decode step, from its launch until its tokens are on the host. First token: from
the arrival of a request. Share: the work done, by how long its prefills and steps take alone, in a part of the time."""

import argparse
import bisect
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
from harness.trainer import MODEL_S, Trainer, ready, series_of

TAIL_S = 0.3            # of a closed loop: everyone still runs when the window ends
OPEN_TAIL_S = 2.0       # of an open one: requests that arrived in the window may still be answered
LEAD_S = 0.5            # until the common start
# One of two goes idle: the other has its part after IDLE_S, and the first has its own again RETURN_S after it comes back.
IDLE_S, RETURN_S = 0.05, 0.02
START_S = 9             # a way: PyTorch, weights, graphs
# Ways that are compared in turns: so many windows of each (quick: QUICK_TURNS), their length, and the time before it.
TURNS, QUICK_TURNS, TURN_S, TURN_SETTLE_S, TURN_LEAD_S = 24, 2, 0.5, 0.1, 0.15
MS = 1e3


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
        """It is warm as soon as it is ready."""

    def say(self, process, seconds, at, path, arrivals=()):
        process.say("serve", f"{seconds:.3f}", f"{at:.3f}", path, *arrivals)

    def lines(self, answer, path):
        """Its events."""
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


def server_figures(lines, begin, end):
    """Of a server's events from `begin` to `end`. A request that has no first token yet counts with the time that it has
    waited by the end of the events."""
    steps = [(*line["step"], line["tokens"]) for line in lines if "step" in line]
    requests = [line for line in lines if "request" in line]
    firsts = [line["first"] for line in requests if line["first"] is not None]
    last = max([*firsts, *(step[1] for step in steps)], default=end)
    took_ms = [MS * (until - since) for since, until, _ in steps if begin <= until < end]
    arrived = [line for line in requests if begin <= line["request"] < end]
    first_ms = [MS * ((last if line["first"] is None else line["first"]) - line["request"]) for line in arrived]
    if not took_ms or not first_ms:
        raise Failed(f"{len(took_ms)} steps and {len(first_ms)} requests in a window; take a longer one (--seconds)")
    tokens = sum(n for _, until, n in steps if begin <= until < end) + sum(begin <= first < end for first in firsts)
    prefill_ms = [MS * (until - since) for since, until in prefills(lines)]
    usual = {"step_p50": stats.percentile(took_ms, 50), "prefill_p50": statistics.median(prefill_ms)}
    return {"tokens_s": tokens / (end - begin), **usual, "busy": share_of(lines, begin, end, usual), "step_p99": stats.percentile(took_ms, 99), "step_max": max(took_ms),
            "first_p50": stats.percentile(first_ms, 50), "first_p99": stats.percentile(first_ms, 99),
            "unserved": sum(line["first"] is None for line in arrived)}


def prefills(lines):
    """[(begin, end)] of a server that does one thing at a time: a prefill begins when the one before has ended, or when its
    request arrives."""
    steps = [line["step"][1] for line in lines if "step" in line]
    requests = sorted((line["first"], line["request"]) for line in lines if line.get("first") is not None)
    ends = sorted([*steps, *(first for first, _ in requests)])
    return [(max(ends[bisect.bisect_left(ends, first) - 1] if first > ends[0] else 0.0, arrived), first)
            for first, arrived in requests]


def share_of(lines, begin, end, alone):
    """Of the time from `begin` to `end`, what its work takes alone: 1 is all of the GPU that it can use."""
    def within(since, until):
        return max(0.0, min(until, end) - max(since, begin)) / max(until - since, 1e-9)
    work_ms = (sum(within(*line["step"]) for line in lines if "step" in line) * alone["step_p50"] +
               sum(within(*one) for one in prefills(lines)) * alone["prefill_p50"])
    return work_ms / MS / (end - begin)


# ---- the scenes

BESIDE = (LlmServer("llm", 40, "4b", 2, 512, priority=10), Training("train", 60, "resnet18", 128, 10))
TWO_EAGER = tuple(LlmServer(f"eager{i}", 50, "1b", 4, 128, is_eager=True, memory="12GiB") for i in (1, 2))


@dataclass(frozen=True)
class Scene:
    about: str
    members: tuple
    load_pct: int = None    # None: closed loop; else requests arrive at random, so many of what one server does alone
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
    sharing: str = None         # of allot run; None: not a tenant
    limit_pct: int = None       # None: the guarantee
    is_mps: bool = False        # without allot
    is_split: bool = False      # by SMs
    with_priority: bool = False

    def options(self, member):
        """Of allot run, or None."""
        if not self.sharing:
            return None
        return ["--memory", member.memory, "--sharing", self.sharing, "--cores", str(member.cores_pct), "--cores-limit",
                str(self.limit_pct or member.cores_pct),
                *(["--priority", str(member.priority)] if self.with_priority and member.priority else [])]

    def environment(self, member):
        return threads(member.cores_pct) if self.is_split else None

    def differs_for(self, members):
        """Whether it is another way than the one without priorities."""
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
    """Those of the ways that are compared in turns in these scenes: slices of time, without MPS. None if only one is left."""
    found = [way for way in ways if SCENES[names[0]].by_turns and not WAYS[way].is_mps and WAYS[way].sharing != "space"
             and not WAYS[way].with_priority]
    return found if len(found) > 1 else []


def groups(scenes):
    """[(members, names of scenes)]: scenes of the same members are measured on the same processes."""
    found = {}
    for name in scenes:
        found.setdefault(SCENES[name].members, []).append(name)
    return list(found.items())


def run_seconds(settings, members, names):
    """One run of every way of these scenes."""
    more_s = settings.settle_s + LEAD_S + 1
    ways = [way for way in settings.ways if WAYS[way].differs_for(members) and way != ALONE]
    windows_s = sum(more_s + settings.seconds * (4 if SCENES[name].has_pause else 1) for name in names)
    alone_s = (ALONE in settings.ways) * len(set_of(members)) * (more_s + settings.seconds)
    turns_s = len(by_turns(ways, names)) * (START_S + turns_of(settings) * (TURN_LEAD_S + TURN_SETTLE_S + TURN_S + TAIL_S))
    return (len(ways) - len(by_turns(ways, names))) * (START_S + windows_s) + turns_s + alone_s


def seconds_of(settings):
    return settings.runs * sum(run_seconds(settings, members, names) for members, names in groups(settings.scenes))


# ---- bars

# (scene, way, figure, of way, "least" or "most", bar). Under a real GPU only.
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
    ("training", "lend", "tokens_s", "mps-split", "least", 0.98),
    ("training", "lend", "steps_s", "mps-split", "least", 0.98),
    ("training", "lend", "step_p99", "mps-split", "most", 1.1),
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
          "share_back": "share once it is back", "returned": "decoding once it is back, against before (until 2026-11-28: all work)"}
UNITS = {"sum": "tok/s", "of_alone": "x", "tokens_s": "tok/s", "steps_s": "1/s", "unserved": "count",
         "busy": "x", "share": "x", "share_apart": "x", "share_back": "x", "apart": "x", "returned": "x"}


def together(figures, alone):
    """One run's figures of all members as one: sums of tokens, and of latencies the worst. With a pause: the speed of decoding of
    the one that stays against alone, and of the one that comes back against before. Not of prefills: the CPU bounds them, and
    in one process they take up to half as long again."""
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
    """Of each figure, over runs."""
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def means(windows):
    """Of each figure, over windows."""
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
    """One window in common: each member's figures. arrivals: (rate, seed) of each; None: closed loops. seconds, settle_s: None:
    as in the settings."""
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
    """Runs four windows: the first alone, both, the first alone, both. The speed alone is measured in the same processes:
    from start to start a prefill, which the CPU bounds, takes up to half as long again."""
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
    """Of the decode steps that began from `begin` to `end`."""
    took_ms = [MS * (until - since) for since, until in (line["step"] for line in lines if "step" in line) if begin <= since < end]
    if not took_ms:
        raise Failed("no step in a window; take a longer one (--seconds)")
    return statistics.mean(took_ms)


def set_of(members):
    """Of those that are alike, one."""
    return list({kind(member): member for member in reversed(members)}.values())[::-1]


def kind(member):
    """What is the same of members that do the same."""
    return tuple(value for key, value in vars(member).items() if key != "name")


def measure_alone(bench, members, processes, alone):
    """Adds to alone[kind of a member] the figures of a run of it, while the others are idle."""
    for member, process in zip(members, processes):
        if kind(member) not in {kind(other) for other in members[:members.index(member)]}:
            alone.setdefault(kind(member), []).append(window(bench, [member], [process])[0])


def turns_of(settings):
    return QUICK_TURNS if settings.quick else TURNS


def measure_by_turns(bench, ways, members, names, found, alone):
    """One run of these ways, whose processes all live and work in turns: the means of their windows. A process that its CPU
    bounds is up to half as fast again from one second to the next, so ways that run one after the other can't be compared."""
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


def arrivals_of(scene, run, alone):
    """(rate, seed) of each member, the same in every way: by the first run alone."""
    if scene.load_pct is None:
        return None
    found = []
    for i, member in enumerate(scene.members):
        capacity = alone[kind(member)][0]["tokens_s"] / member.tokens / len(scene.members)
        found.append((f"{capacity * scene.load_pct / 100:.4f}", 100 * run + i + 1))
    return found


def measure_run(bench, way, members, names, run, found, alone):
    """Adds a run's figures to found[scene][way], and to `alone` where that is asked for."""
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
                runs.append(window(bench, members, processes, arrivals_of(scene, run, alone)))


def report(members, names, found, alone):
    """The figures of all ways so far."""
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
    """The figures of a way on one line: medians, and from the least to the most of several runs."""
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
    """Every figure of a scene, and its bars."""
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
    if not bench.machine.sim:
        for row in judged(name, members, {way: medians(runs) for way, runs in runs_of.items()}, usual):
            bench.result.add(row)


def judged(name, members, found, usual):
    """Rows with their bars, of the ways that were measured."""
    for scene, way, figure, other, side, bar in BARS:
        if scene != name or way not in found or (other and other not in found) or figure not in found[way]:
            continue
        got = found[way][figure] / (found[other][figure] if other else 1)
        row = Row(f"{name}, {way}: {LABELS[figure]}" + (f" over {other}'s" if other else ""), "x", got)
        yield (at_least if side == "least" else at_most)(row, bar)
    if name == "training" and "turns-priority" in found and usual:
        ideal = usual[0]["step_p99"] / (members[0].cores_pct / 100)
        yield at_most(Row(f"{name}, turns-priority: step p99 over (step alone / share)", "x",
                          found["turns-priority"]["step_p99"] / ideal), IDEAL_P99)


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
    """Scenes of the same members, and what was measured of them."""

    def __init__(self, members, names):
        self.members, self.names = members, names
        self.found = {name: {} for name in names}       # [way]: figures of each member, of each run
        self.alone = {}
        self.broken = []


def measure_ways(bench, group, run):
    """Every way once, so that all have the same times of day."""
    ways = list(dict.fromkeys("native" if way == ALONE else way for way in bench.settings.ways))
    in_turns = by_turns(ways, group.names)
    if in_turns and not set(in_turns) & set(group.broken):
        try:
            measure_by_turns(bench, in_turns, group.members, group.names, group.found, group.alone)
        except Failed as error:
            bench.result.skip(f"{', '.join(group.names)}: {', '.join(in_turns)}", str(error))
            group.broken += in_turns
    ways = [way for way in ways if way not in in_turns]
    for way in sorted(ways, key=lambda way: way != "native"):     # what is alone is known first
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
