"""The rows of a bench: prints each as it is measured, judges it, and writes all as JSON and SVG."""

import datetime
import json
import math
import os
import re
import statistics
from dataclasses import dataclass

from . import stats

VERSION = 2         # of the form of result files
TIME = "time"
NO_GPU = "none"     # the name of the GPU where none takes part
COLUMNS = f"{'case':46} {'unit':7} {'asked':>8} {'got':>9} {'native':>9} {'MPS':>8} {'rival':>8}  bar"


@dataclass
class Row:
    name: str
    unit: str
    got: float
    asked: float = None
    native: float = None
    rival: float = None
    mps: float = None       # the same measured under MPS without allot, in the same run
    bar: str = None         # in words: "within 1 of asked", "at least 48"
    passed: bool = None     # None: reported only
    error: float = None     # the standard error of got, in the row's unit, where it is known
    runs: list = None       # with several runs: the value of each; got is then their median
    judge: tuple = None     # (function, limit): judges the row
    runs_needed: int = None     # set if the row is uncertain: it would pass, but its standard error is too large

    def line(self):
        def number(value):
            return "" if value is None else f"{value:.4g}" if abs(value) >= 1000 else f"{value:.2f}"
        verdict = "UNCERTAIN" if self.runs_needed else {True: "PASS", False: "FAIL", None: ""}[self.passed]
        return (f"{self.name:46} {self.unit:7} {number(self.asked):>8} {number(self.got):>9} "
                f"{number(self.native):>9} {number(self.mps):>8} {number(self.rival):>8}  "
                f"{self.bar or '':24} {verdict}").rstrip()

    def json(self):
        values = {"name": self.name, "unit": self.unit, "asked": self.asked, "got": self.got,
                  "native": self.native, "mps": self.mps, "rival": self.rival, "bar": self.bar,
                  "pass": self.passed, "error": None if self.error == math.inf else self.error,
                  "runs_needed": self.runs_needed, "runs": self.runs and [round(value, 4) for value in self.runs]}
        return {key: round(value, 4) if isinstance(value, float) else value
                for key, value in values.items() if value is not None}


ERROR_PART = 3      # the standard error of a judged row may be this part of its tolerance at most: a third


def judged(row, bar, is_good, tolerance):
    """Sets a row's verdict. If its standard error is over a third of the tolerance, it does not pass: it is uncertain."""
    row.bar, row.passed, row.runs_needed = bar, is_good, None
    if row.error is None and row.runs and len(row.runs) > 1:
        row.error = stats.error_of_median(row.runs)
    wanted = tolerance / ERROR_PART
    if row.error is not None and row.error > wanted:
        runs = stats.runs_for_error(row.error, len(row.runs or [row.got]), wanted)
        row.bar += f"; uncertain: standard error {row.error:.2g}, wanted {wanted:.2g}; about {runs} runs settle it"
        row.passed, row.runs_needed = False, runs if is_good else None
    return row


def tolerance_of(row, limit):
    """How far the figure may be from what was asked. If nothing was asked it is the limit itself, and if exactly the limit was
    asked, a hundredth of it."""
    return abs(limit if row.asked is None else (limit - row.asked) or limit / 100)


def within(row, points):
    """Judges a row by its distance from what was asked."""
    row.judge = within, points
    return judged(row, f"within {points:g} of asked", abs(row.got - row.asked) <= points, points)


def within_pct(row, pct):
    """Judges a row by its distance from what was asked, in percent of that."""
    row.judge = within_pct, pct
    return judged(row, f"within {pct:g} % of asked", abs(row.got / row.asked - 1) <= pct / 100,
                  abs(row.asked) * pct / 100)


def at_least(row, least):
    row.judge = at_least, least
    return judged(row, f"at least {least:g}", row.got >= least, tolerance_of(row, least))


def at_most(row, most):
    row.judge = at_most, most
    return judged(row, f"at most {most:g}", row.got <= most, tolerance_of(row, most))


def median_of(rows, key):
    known = [getattr(row, key) for row in rows if getattr(row, key) is not None]
    return statistics.median(known) if known else None


def median_row(rows):
    """One row for the same row of several runs: its figures are their medians, and so is its bar."""
    last = rows[-1]
    if len(rows) == 1:
        return last
    row = Row(last.name, last.unit, *(median_of(rows, key) for key in ("got", "asked", "native", "rival", "mps")),
              runs=[one.got for one in rows])
    if last.judge:
        judge, _ = last.judge
        return judge(row, statistics.median(one.judge[1] for one in rows if one.judge))
    if last.bar:
        row.bar, row.passed = last.bar, all(one.passed for one in rows)
    return row


def without_numbers(name):
    return re.sub(r"[\d.,]+", "", name)


def merged(runs):
    """The rows of several runs of a bench as one list. Rows belong together if their names are equal or, since some names have
    counts in them, equal but for their numbers."""
    groups = [[row] for row in runs[0]]
    for rows in runs[1:]:
        free, left = list(groups), list(rows)
        for key in (str, without_numbers):
            for row in list(left):
                group = next((group for group in free if key(group[0].name) == key(row.name)), None)
                if group:
                    group.append(row)
                    free.remove(group)
                    left.remove(row)
        groups += [[row] for row in left]
    return [median_row(group) for group in groups]


def file_stem(result):
    """The name of a result's files, without the scenes of the bench llm. `result`: as in JSON."""
    gpu = re.sub(r"[^a-z0-9]+", "-", result["gpu"].lower()).strip("-")
    if result["gpu"] == NO_GPU:
        gpu = "no-gpu"
    elif result["simulated"] and "sim" not in gpu:
        gpu = "sim-" + gpu
    sharing = "-" + result["sharing"] if "sharing" in result else ""
    number, slash, count = result.get("part", "").partition("/")
    part = f"-part-{number}-of-{count}" if slash else ""
    return f"{result['date']}-{gpu}-{result['bench']}{sharing}{part}"


class Result:
    """The findings of one bench. `command`: the command line that started it."""

    def __init__(self, bench, machine, commit, rival_source, command):
        self.bench = bench
        self.machine = machine
        self.commit = commit
        self.rival_source = rival_source
        self.command = command
        self.seed = None        # a bench that makes random choices sets the seed that these follow
        self.date = datetime.date.today().isoformat()
        self.rows = []
        self.charts = []        # functions that draw a chart to a path with this stem, see plot.py
        self.series = []        # {"name", "unit", "every_s", "values"}: figures over time, see add_series()
        self.skipped = []       # {"name", "reason"}
        self.has_gpu = True     # False: the bench uses no GPU, so its result is the same on any
        self.part = None        # (number, count) of --part, when only a part of the cells was measured
        self.scenes = None      # for the bench llm: names of the scenes, when not all were measured
        self.sharing = machine.sharing or TIME
        self.gpus = 1           # how many take part

    def begin_run(self):
        """Each run of the bench has rows and charts of its own. Charts are of the last run, but for bars, which are of all."""
        self.rows, self.charts = [], []

    def add(self, row):
        self.rows.append(row)
        print(row.line(), flush=True)

    def add_series(self, name, unit, values, every_s=1):
        """Records a figure over time, with a value for each `every_s` seconds."""
        self.series.append({"name": name, "unit": unit, "every_s": every_s, "values": [round(value, 4) for value in values]})

    def skip(self, name, reason):
        """Records a case that could not be measured here, and why."""
        if {"name": name, "reason": reason} not in self.skipped:    # each of several runs says so
            self.skipped.append({"name": name, "reason": reason})
        print(f"{name:46} skipped: {reason}", flush=True)

    def row(self, name):
        return next(row for row in self.rows if row.name == name)

    def stem(self, folder):
        return os.path.join(folder, file_stem(self.json()))

    def json(self):
        """The result in the form that bench/README.md documents."""
        none = None if self.has_gpu else NO_GPU
        is_pinned = not none and self.gpus == 1
        values = {"version": VERSION, "bench": self.bench, "gpu": none or self.machine.gpu,
                "gpu_index": self.machine.gpu_index if is_pinned else None,
                "gpu_uuid": self.machine.gpu_uuid if is_pinned else None,
                "driver": none or self.machine.driver, "simulated": bool(none or self.machine.sim),
                "date": self.date, "commit": self.commit, "command": self.command, "seed": self.seed,
                "rival_source": self.rival_source if any(row.rival is not None for row in self.rows) else None,
                "sharing": None if self.sharing == TIME else self.sharing,
                "part": f"{self.part[0]}/{self.part[1]}" if self.part else "+".join(self.scenes or ()) or None,
                "cases": [row.json() for row in self.rows],
                "series": self.series or None,
                "skipped": self.skipped or None}
        return {key: value for key, value in values.items() if value is not None or key == "seed"}

    def write_json(self, path):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.json(), file, indent=1)
            file.write("\n")

    def write(self, folder):
        os.makedirs(folder, exist_ok=True)
        stem = self.stem(folder)
        # The charts have the scene in their names.
        self.write_json("-".join([stem, *(self.scenes or ())]) + ".json")
        for chart in self.charts:
            chart(stem)
