"""Compares two results of one bench: finds rows that got worse by more than the tolerance and by more than chance."""

import json
import math
import re
from dataclasses import dataclass

from .job import Failed
from .result import VERSION


SIGNIFICANT = 3     # standard errors of a difference: chance exceeds this, in each direction, once in a thousand rows


@dataclass
class Change:
    name: str
    unit: str
    before: float
    now: float
    worse_by: float     # in the row's unit; negative: better
    allowed: float

    @property
    def is_worse(self):
        return self.worse_by > self.allowed


def badness(row, got):
    """A figure that is larger for a worse row, by the direction of the row's bar. None for a row without a bar."""
    bar = row.get("bar", "")
    if re.match(r"at least\b", bar):
        return -got
    if re.match(r"at most\b", bar):
        return got
    if re.match(r"within\b", bar) and "asked" in row:
        return abs(got - row["asked"])
    return None


def compare(baseline, now, tolerance_pct):
    """Compares two results as read from JSON. Returns (changes, names of judged rows that the new run lacks). A row may
    be worse by the tolerance, in percent of its old value or of the value asked for. If chance may make
    a larger difference, by the standard errors of both, that one is allowed."""
    found = {row["name"]: row for row in now["cases"]}
    changes, missing = [], []
    for row in baseline["cases"]:
        before = badness(row, row["got"])
        if before is None:
            continue
        new = found.get(row["name"])
        if new is None:
            missing.append(row["name"])
            continue
        scale = max(abs(row["got"]), abs(row.get("asked", 0)))
        chance = SIGNIFICANT * math.hypot(row.get("error", 0), new.get("error", 0))
        changes.append(Change(row["name"], row["unit"], row["got"], new["got"],
                              badness(row, new["got"]) - before, max(scale * tolerance_pct / 100, chance)))
    return changes, missing


def read(path):
    """A result file; Failed says what is wrong with it."""
    try:
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
    except (OSError, ValueError) as error:
        raise Failed(f"--baseline: {path}: {error}") from error
    if not isinstance(result, dict) or result.get("version") not in range(1, VERSION + 1) or \
            not isinstance(result.get("bench"), str) or not isinstance(result.get("cases"), list):
        raise Failed(f"--baseline: {path}: not a result of allot bench (version 1 to {VERSION})")
    for row in result["cases"]:
        if not isinstance(row, dict) or not isinstance(row.get("got"), (int, float)) or \
                not {"name", "unit"} <= row.keys():
            raise Failed(f"--baseline: {path}: a case without name, unit and got")
    return result


def judge(baseline, now, tolerance_pct, say=print):
    """Prints the comparison. Returns whether no row is worse and none missing."""
    if baseline.get("gpu") != now.get("gpu") or baseline.get("simulated") != now.get("simulated"):
        say(f"note: the baseline is of {baseline.get('gpu')}, this is {now.get('gpu')}")
    changes, missing = compare(baseline, now, tolerance_pct)
    for change in changes:
        verdict = "WORSE" if change.is_worse else "ok"
        say(f"{change.name:46} {change.unit:7} before {change.before:9.4g}  now {change.now:9.4g}  "
            f"may be worse by {change.allowed:.3g}  {verdict}")
    for name in missing:
        say(f"{name}: in the baseline, not measured now  MISSING")
    worse = sum(change.is_worse for change in changes)
    say(f"{len(changes)} compared, {worse} worse, {len(missing)} missing")
    return bool(changes) and worse == 0 and not missing
