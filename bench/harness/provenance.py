"""Where a result comes from: the command line that it names, and the check that each file in bench/results says all that
bench/README.md demands ("Results")."""

import datetime
import glob
import json
import math
import os
import re
import shlex
import subprocess

from .build import REPOSITORY
from .result import VERSION, file_stem

PROGRAM = "bench/run"
BEFORE_VERSION_2 = "2026-12-01"     # results of version 1 are older

UNREACHABLE = "its commit is in no branch: it was measured before commits were checked"
DIRTY = "it was measured with changes that were not committed, before commits were checked"
# Files whose commit is not checked, and why. None is to be added: measure again instead.
EXCEPTIONS = {
    "2026-11-21-nvidia-h200-many_streams.json": UNREACHABLE,
    "2026-11-21-nvidia-h200-matrix-part-1-of-2.json": DIRTY,
    "2026-11-21-nvidia-h200-matrix-part-2-of-2.json": UNREACHABLE,
    "2026-11-21-nvidia-h200-pair.json": UNREACHABLE,
    "2026-11-21-nvidia-h200-target.json": UNREACHABLE,
    "2026-11-23-nvidia-h200-daemon_cpu.json": UNREACHABLE,
    "2026-11-23-nvidia-h200-policies.json": UNREACHABLE,
}


# ---- the command line

def command_text(words, root=REPOSITORY):
    """The command line of bench/run with these arguments. It names no folder of this machine: of an absolute path it has the
    part below `root`, or else the last part."""
    return shlex.join([PROGRAM, *(without_folders(word, root) for word in words)])


def without_folders(word, root):
    option, path = re.fullmatch(r"(--[\w-]+=)?(.*)", word, re.DOTALL).groups(default="")
    if not path.startswith("/"):
        return word
    path = os.path.normpath(path)
    is_below = path.startswith(root + "/")
    return option + (os.path.relpath(path, root) if is_below else os.path.basename(path))


# ---- the history of commits

def read_history(root):
    """Returns (commits, note): all commits that HEAD or main contains, or None and why they can't be known."""
    def git(*words):
        return subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, check=False)
    try:
        where = git("rev-parse", "--show-toplevel", "--is-shallow-repository")
    except OSError:
        return None, "git is not installed"
    if where.returncode:
        return None, "this is no git checkout"
    top, is_shallow = where.stdout.splitlines()
    if os.path.realpath(top) != os.path.realpath(root):
        return None, "this is no git checkout of its own"
    if is_shallow == "true":
        return None, "this git checkout is shallow"
    # --ignore-missing: a checkout need not have both branches.
    listed = git("rev-list", "--ignore-missing", "HEAD", "main", "origin/main", "--")
    if listed.returncode or not listed.stdout:
        return None, "git lists no commits"
    return set(listed.stdout.split()), None


def fault_of_commit(commit, history=None):
    """What is wrong with the commit of a result, or None. `history`: all commits that it may be; None: not known."""
    if not commit:
        return "the commit is not known"
    if "dirty" in commit:
        return f"commit {commit}: files had changes that are not committed"
    if not re.fullmatch(r"[0-9a-f]{12,40}", commit):
        return f"commit '{commit}': must be 12 to 40 hexadecimal digits"
    if history is not None and not any(known.startswith(commit) for known in history):
        return f"commit {commit}: neither HEAD nor main contains it"
    return None


# ---- the form of a result

def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def is_text(value):
    return isinstance(value, str) and value != ""


def is_unit(value):
    return isinstance(value, str)


def is_flag(value):
    return isinstance(value, bool)


def is_list(value):
    return isinstance(value, list) and value != []


def is_count(value):
    return isinstance(value, int) and not isinstance(value, bool)


def is_date(value):
    try:
        return datetime.date.fromisoformat(value).isoformat() == value
    except (TypeError, ValueError):
        return False


def is_seed(value):
    return value is None or is_count(value) and value >= 0


def is_command(value):
    """Whether it is one of bench/run and names no absolute path."""
    try:
        words = shlex.split(value) if is_text(value) else []
    except ValueError:
        return False
    return words[:1] == [PROGRAM] and not any(re.match(r"(--[\w-]+=)?/", word) for word in words)


def are_numbers(value):
    return is_list(value) and all(map(is_number, value))


def are_skips(value):
    return is_list(value) and all(isinstance(skip, dict) and skip.keys() == {"name", "reason"} for skip in value)


def are_series(value):
    members = {"name": is_text, "unit": is_unit, "every_s": is_number, "values": are_numbers}
    return is_list(value) and all(isinstance(one, dict) and not list(faults_of_members(one, members, {})) for one in value)


# The commit has a check of its own.
REQUIRED = {"version": is_count, "bench": is_text, "gpu": is_text, "driver": is_text, "simulated": is_flag, "date": is_date,
            "commit": is_text, "cases": is_list}
REQUIRED_OF_2 = {**REQUIRED, "command": is_command, "seed": is_seed}
OPTIONAL = {"gpu_index": is_count, "gpu_uuid": is_text, "rival_source": is_text, "sharing": is_text, "part": is_text,
            "skipped": are_skips, "series": are_series}
REQUIRED_OF_ROW = {"name": is_text, "unit": is_unit, "got": is_number}
OPTIONAL_OF_ROW = {"asked": is_number, "native": is_number, "mps": is_number, "rival": is_number, "error": is_number,
                   "bar": is_text, "pass": is_flag, "runs": are_numbers, "runs_needed": is_count}


def faults_of_members(members, required, optional):
    for name in required:
        if name not in members:
            yield f"no member '{name}'"
    for name, value in members.items():
        is_right = required.get(name) or optional.get(name)
        if not is_right:
            yield f"the member '{name}' is not known"
        elif not is_right(value):
            yield f"{name}: {json.dumps(value)[:60]} is not valid"


def faults_of_row(row):
    if not isinstance(row, dict):
        yield "is not an object"
        return
    faults = list(faults_of_members(row, REQUIRED_OF_ROW, OPTIONAL_OF_ROW))
    yield from faults
    if faults:
        return
    if ("bar" in row) != ("pass" in row):
        yield "'bar' and 'pass' go together"
    if "runs_needed" in row and row.get("pass") is not False:
        yield "'runs_needed' is of a row that does not pass"
    runs = row.get("runs", [row["got"]])
    if not min(runs) <= row["got"] <= max(runs):
        yield "'got' is outside of 'runs'"


def faults_of_name(result, name):
    """A result of the bench llm may have more words behind, which tell results of one day apart."""
    stem = file_stem(result)
    if name != stem + ".json" and not (result["bench"] == "llm" and name.startswith(stem + "-")):
        yield f"date, GPU and bench in it are of {stem}.json"


def faults_of(result, name):
    """What is wrong with a result as read from the file of this name, except for its commit."""
    if not isinstance(result, dict):
        yield "is not an object"
        return
    version = result.get("version")
    if not is_count(version) or not 1 <= version <= VERSION:
        yield f"version {version}: must be 1 to {VERSION}"
        return
    faults = list(faults_of_members(result, REQUIRED if version == 1 else REQUIRED_OF_2, OPTIONAL))
    yield from faults
    if faults:
        return
    if version == 1 and result["date"] >= BEFORE_VERSION_2:
        yield f"version 1 and dated {result['date']}: results from {BEFORE_VERSION_2} on need version 2"
    yield from faults_of_name(result, name)
    for i, row in enumerate(result["cases"]):
        title = row.get("name", i) if isinstance(row, dict) else i
        yield from (f"case '{title}': {fault}" for fault in faults_of_row(row))


def check(folder, history, exceptions=None):
    """Checks all result files of this folder. `history` is of read_history(). Returns a line for each fault."""
    exceptions = EXCEPTIONS if exceptions is None else exceptions
    paths = {os.path.basename(path): path for path in sorted(glob.glob(os.path.join(folder, "*.json")))}
    found = [f"{name}: is not there; take it off EXCEPTIONS" for name in exceptions if name not in paths]
    for name, path in paths.items():
        try:
            with open(path, encoding="utf-8") as file:
                result = json.load(file)
        except (OSError, ValueError) as error:
            found.append(f"{name}: {error}")
            continue
        faults = list(faults_of(result, name))
        if not faults and name not in exceptions:
            faults = filter(None, [fault_of_commit(result["commit"], history)])
        found += [f"{name}: {fault}" for fault in faults]
    return found
