"""The rows of a bench: prints each as it is measured, judges it, and writes all as JSON and SVG."""

import datetime
import json
import os
import re
from dataclasses import dataclass

TIME = "time"
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

    def line(self):
        def number(value):
            return "" if value is None else f"{value:.4g}" if abs(value) >= 1000 else f"{value:.2f}"
        verdict = {True: "PASS", False: "FAIL", None: ""}[self.passed]
        return (f"{self.name:46} {self.unit:7} {number(self.asked):>8} {number(self.got):>9} "
                f"{number(self.native):>9} {number(self.mps):>8} {number(self.rival):>8}  "
                f"{self.bar or '':24} {verdict}").rstrip()

    def json(self):
        values = {"name": self.name, "unit": self.unit, "asked": self.asked, "got": self.got,
                  "native": self.native, "mps": self.mps, "rival": self.rival, "bar": self.bar,
                  "pass": self.passed, "error": self.error,
                  "runs": self.runs and [round(value, 4) for value in self.runs]}
        return {key: round(value, 4) if isinstance(value, float) else value
                for key, value in values.items() if value is not None}


def within(row, points):
    """Judges a row by its distance from what was asked."""
    row.bar = f"within {points:g} of asked"
    row.passed = abs(row.got - row.asked) <= points
    return row


def within_pct(row, pct):
    """Judges a row by its distance from what was asked, in percent of that."""
    row.bar = f"within {pct:g} % of asked"
    row.passed = abs(row.got / row.asked - 1) <= pct / 100
    return row


def at_least(row, least):
    row.bar = f"at least {least:g}"
    row.passed = row.got >= least
    return row


def at_most(row, most):
    row.bar = f"at most {most:g}"
    row.passed = row.got <= most
    return row


class Result:
    """The findings of one bench."""

    def __init__(self, bench, machine, commit, rival_source):
        self.bench = bench
        self.machine = machine
        self.commit = commit
        self.rival_source = rival_source
        self.date = datetime.date.today().isoformat()
        self.rows = []
        self.charts = []        # functions that draw a chart to a path with this stem, see plot.py
        self.skipped = []       # {"name", "reason"}
        self.has_gpu = True     # False: the bench uses no GPU, so its result is the same on any
        self.part = None        # (number, count) of --part, when only a part of the cells was measured
        self.scenes = None      # for the bench llm: names of the scenes, when not all were measured
        self.sharing = machine.sharing or TIME

    def add(self, row):
        if self.machine.sim:
            row.rival = None    # rivals were measured on a real GPU, so a simulated run has nothing to compare with
        self.rows.append(row)
        print(row.line(), flush=True)

    def skip(self, name, reason):
        """Records a case that could not be measured here, and why."""
        self.skipped.append({"name": name, "reason": reason})
        print(f"{name:46} skipped: {reason}", flush=True)

    def row(self, name):
        return next(row for row in self.rows if row.name == name)

    def stem(self, folder):
        gpu = re.sub(r"[^a-z0-9]+", "-", self.machine.gpu.lower()).strip("-")
        if self.machine.sim and "sim" not in gpu:
            gpu = "sim-" + gpu
        if not self.has_gpu:
            gpu = "no-gpu"
        part = f"-part-{self.part[0]}-of-{self.part[1]}" if self.part else ""
        sharing = "" if self.sharing == TIME else f"-{self.sharing}"
        return os.path.join(folder, f"{self.date}-{gpu}-{self.bench}{sharing}{part}")

    def json(self):
        """The result in the form that bench/README.md documents."""
        none = None if self.has_gpu else "none"
        values = {"version": 1, "bench": self.bench, "gpu": none or self.machine.gpu,
                "driver": none or self.machine.driver, "simulated": bool(none or self.machine.sim),
                "date": self.date, "commit": self.commit,
                "rival_source": None if none or self.machine.sim else self.rival_source,
                "sharing": None if self.sharing == TIME else self.sharing,
                "part": f"{self.part[0]}/{self.part[1]}" if self.part else "+".join(self.scenes or ()) or None,
                "cases": [row.json() for row in self.rows],
                "skipped": self.skipped or None}
        return {key: value for key, value in values.items() if value is not None}

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
