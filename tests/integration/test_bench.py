"""`allot bench` on the simulated GPU: how it finds its files, what it refuses, the form of its results, and its regression
check with a good and a bad run. Also the modes of allot-load. The accuracy of shares is not tested here."""

import contextlib
import hashlib
import importlib.machinery
import importlib.util
import json
import math
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import types

import pytest
from machines import BUILD, ROOT, processes_of, wait_until

sys.path.append(str(ROOT / "bench"))
from cases import topology              # noqa: E402
from harness import provenance, regress, sense, stats      # noqa: E402
from harness.build import Build         # noqa: E402
from harness.job import Failed          # noqa: E402
from harness.load import Kernel, Load, Loads, Outcome       # noqa: E402
from harness.machine import Machine     # noqa: E402
from harness.mps import plain_mps       # noqa: E402
from harness.nvml import Unavailable    # noqa: E402
from harness.result import Row, at_least, at_most, merged, within       # noqa: E402

# One cell: a tenant alone at 50 %.
CELL = ("matrix", "--quick", "--part", "1/4")
PROGRAMS = ("allot", "allotd", "allot-sim", "allot-load", "liballot.so", "sim")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with the layout of scripts/build: a folder of programs, and bench/ beside it."""
    base = tmp_path_factory.mktemp("b")
    (base / "build").mkdir()
    for name in PROGRAMS:
        if (BUILD / name).is_dir():
            shutil.copytree(BUILD / name, base / "build" / name)
        else:
            shutil.copy(BUILD / name, base / "build" / name)
    (base / "bench").symlink_to(ROOT / "bench")
    return base


def bench(home, *arguments, timeout=100, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ALLOT_")}
    return subprocess.run([home / "build" / "allot", "bench", *map(str, arguments)], text=True,
                          capture_output=True, timeout=timeout, check=False,
                          env={**clean, **environment})


@pytest.fixture(scope="module")
def cell(home):
    """Returns (the finished run, its JSON) of one cell."""
    path = home / "cell.json"
    result = bench(home, *CELL, "--sim", "h200", "--json", path)
    return result, json.loads(path.read_text())


PAIRS = """
[gpu]
nvlink = 1:2
copy_bytes_s = 10 GiB
[gpu]
pci = 0000:2a:00.0
nvlink = 0:2
copy_bytes_s = 10 GiB
[gpu]
pci = 0000:9a:00.0
numa = 1
nvlink = 3:4
copy_bytes_s = 10 GiB
far_bytes_s = 8 GiB
[gpu]
pci = 0000:ab:00.0
numa = 1
nvlink = 2:4
"""


@pytest.mark.alone  # durations of copies
def test_topology_measures_each_path(home, tmp_path):
    """Two pairs of GPUs, with two and with four NVLinks, are connected by PCIe. The daemon chooses the nearer pair. Each path
    has its own speed, so the durations show which path a copy took."""
    spec = tmp_path / "pairs"
    spec.write_text(PAIRS)
    shutil.copy(Build(BUILD).program("peer-copy"), home / "build")
    path = tmp_path / "result.json"
    result = bench(home, "topology", "--quick", "--sim", spec, "--json", path)
    assert path.exists(), result.stdout + result.stderr
    report = json.loads(path.read_text())
    got = {row["name"]: row["got"] for row in report["cases"]}
    native = {row["name"]: row["native"] for row in report["cases"]}
    assert {name.partition(":")[0] for name in got} == {
        "a copy", "a copy, the two chosen", "a copy, the two farthest", "a ring of 4"}
    # 93.1, 46.6 and 5 GiB/s. The last is half of copy_bytes_s, because GPU 0 has no far_bytes_s.
    four, two = native["a copy: GPUs 2 and 3, NV4"], native["a copy: GPUs 0 and 1, NV2"]
    far = native["a copy: GPUs 0 and 2, SYS"]
    assert two / four == pytest.approx(0.5, rel=0.25)
    assert far / two == pytest.approx(5 / 46.6, rel=0.25)
    assert "a copy, the two chosen: GPUs 2 and 3, NV4" in got
    assert "a copy, the two farthest: GPUs 0 and 2, SYS" in got
    assert got["a copy: chosen against farthest"] > 5
    # Four GPUs have one ring, so nothing is compared with itself.
    assert [skipped["name"] for skipped in report["skipped"]] == ["the choice of 4 of 4 GPUs", "all-reduce over 4"]


@pytest.mark.parametrize("chosen, passes", [((0, 1, 2, 3), True), ((2, 3, 4, 5), False)])
def test_a_ring_is_judged_against_the_nearest(monkeypatch, chosen, passes):
    """Of six GPUs, 0 to 3 have links of 100, and others of 10; those of GPU 5 to 0 and 1 have 1."""
    links = [{"devices": [a, b], "nvlinks": 0, "pcie": "SYS",
              "score": 100 if b < 4 else 1 if b == 5 and a < 2 else 10} for b in range(6) for a in range(b)]
    report = {"devices": [{"index": i, "uuid": f"GPU-{i}"} for i in range(6)], "links": links}
    machine = types.SimpleNamespace(tell=lambda *_: json.dumps(report), sim="six",
                                    choose=lambda count: chosen[:count])
    rows = []
    result = types.SimpleNamespace(add=rows.append, skip=lambda *_: None, charts=[])
    monkeypatch.setattr(topology, "copies", lambda _bench, cards, _gpus, moves, *_: [
        cards.link[tuple(sorted(move))]["score"] for move in moves])
    topology.topology(types.SimpleNamespace(machine=machine, result=result, bar=lambda bar, _quick: bar))
    (judged,) = [row for row in rows if row.name.startswith("a ring of 4, chosen")]
    assert (judged.passed, judged.bar) == (passes, "at least 95")


def test_topology_needs_two_gpus(home, tmp_path):
    path = tmp_path / "result.json"
    bench(home, "topology", "--quick", "--sim", "h200", "--json", path)
    assert json.loads(path.read_text())["skipped"] == [{"name": "copies between GPUs", "reason": "one GPU"}]


@pytest.mark.alone  # durations of tasks
def test_tasks_that_fit_take_equal_times(home, tmp_path):
    path = tmp_path / "result.json"
    result = bench(home, "that_fit", "--quick", "--sim", "h200", "--json", path)
    assert result.returncode == 0, result.stdout + result.stderr
    rows = {row["name"]: row for row in json.loads(path.read_text())["cases"]}
    assert rows["one task"]["native"] >= 1
    together = rows["2 tasks: time over that of 2 tasks one by one"]
    # The GPU can't do the work of two tasks in less time. The end of a process takes a moment, too.
    assert min(together["got"], together["native"]) > 0.8 and together["pass"]
    assert rows["2 tasks: the first ended before the last by"]["pass"]


def test_list_ends_quietly_if_its_pipe_is_closed():
    """`bench/run --list | head -1`: the reader ends before the second line."""
    listing = subprocess.Popen([sys.executable, ROOT / "bench/run", "--list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={**os.environ, "PYTHONUNBUFFERED": "1"}, text=True)
    listing.stdout.close()
    assert listing.stderr.read() == ""
    assert listing.wait(timeout=60) == -signal.SIGPIPE


def test_lists_the_benches_and_their_times(home):
    result = bench(home, "--list")
    assert result.returncode == 0, result.stderr
    names = [line.split()[0] for line in result.stdout.splitlines()]
    assert {"matrix", "three", "target", "five_equal", "pair", "odd_work", "many_streams", "step",
            "priority", "bursty", "scale", "sensors", "policies", "topology", "regress",
            "closed_loops", "trainings_half"} <= set(names)
    assert "about" in result.stdout


def test_a_copy_without_benches_or_python_says_so(home, tmp_path):
    shutil.copy(BUILD / "allot", tmp_path / "allot")
    alone = subprocess.run([tmp_path / "allot", "bench", "--list"], capture_output=True, text=True,
                           check=False, timeout=10)
    assert alone.returncode == 1 and not alone.stdout
    assert "bench/run, is not installed beside this program" in alone.stderr
    bare = bench(home, "--list", PATH="/nonexistent")
    assert bare.returncode == 1 and "python3, which is not in PATH" in bare.stderr


@pytest.mark.parametrize("arguments, wrong", [
    ((), "a benchmark is missing"),
    (("nope",), "'nope'"),
    (("--nope",), "--nope"),
    (("three", "pair", "--json", "x"), "--json"),
    (("regress",), "--baseline"),
    (("three", "--baseline", "x"), "--baseline"),
    (("regress", "--baseline", "/nonexistent"), "/nonexistent"),
    (("matrix", "--part", "3/2"), "3/2"),
    (("three", "--sharing", "both"), "'both'"),
    (("three", "--gpu", "first"), "'first'"),
    (("three", "--runs", "0"), "'0'"),
    (("three", "--rival-library", "/nonexistent"), "'/nonexistent'"),
    (("three", "--rival-environment", "A={memory}"), "'A={memory}'"),
    (("three", "--rival-environment", "A=1"), "--rival-library"),
])
def test_bad_input_is_refused_and_named(home, arguments, wrong):
    result = bench(home, *arguments)
    assert result.returncode == 2 and wrong in result.stderr, result.stderr


def test_a_result_has_the_documented_form(cell):
    run, result = cell
    assert run.returncode in (0, 1), run.stderr     # a bar may be missed on a busy machine
    assert result["version"] == 2 and result["bench"] == "matrix" and result["part"] == "1/4"
    assert result["simulated"] is True and result["gpu"] and result["driver"] and result["date"]
    assert result["command"] == "bench/run --build build --quick --json cell.json --part 1/4 --sim h200 --out '' matrix"
    name = provenance.file_stem(result) + ".json"
    assert (list(provenance.faults_of(result, name)), result["seed"]) == ([], None)
    row = next(row for row in result["cases"] if row["name"] == "alone, 50 %, 8192 blocks, 1 ms")
    assert row["unit"] == "%" and row["asked"] == 50 and row["native"] == 100
    assert abs(row["got"] - 50) < 20
    judged = [row for row in result["cases"] if "bar" in row]
    assert len(judged) == 3 and all(isinstance(row["pass"], bool) for row in judged)
    assert run.returncode == (0 if all(row["pass"] for row in judged) else 1)


def with_got(result, got):
    """Returns the result with only its judged rows, each with the value got(row)."""
    rows = [dict(row, got=got(row)) for row in result["cases"] if "bar" in row]
    return dict(result, cases=rows)


def test_regress_finds_worse_results(home, cell, tmp_path):
    def regress_against(got):
        baseline = tmp_path / "baseline.json"
        baseline.write_text(json.dumps(with_got(cell[1], got)))
        return bench(home, "regress", "--baseline", baseline, *CELL[1:], "--sim", "h200")

    # No result is worse than the first baseline, and none is as good as the second one.
    good = regress_against(lambda row: 0 if row["bar"].startswith("at least") else 100)
    assert good.returncode == 0, good.stdout + good.stderr
    assert "3 compared, 0 worse, 0 missing" in good.stdout
    bad = regress_against(lambda row: 200 if row["bar"].startswith("at least") else -100)
    assert bad.returncode == 1, bad.stdout + bad.stderr
    assert "3 compared, 3 worse, 0 missing" in bad.stdout


def test_regress_judges_by_the_bar():
    def result(*rows):
        return {"cases": [dict(zip(("name", "unit", "got", "asked", "bar"), row)) for row in rows]}
    before = result(("near", "%", 50.5, 50, "within 1 of asked"), ("sum", "%", 98, 100, "at least 97"),
                    ("cost", "ns", 40, 0, "at most 50"), ("no bar", "%", 5, 5, ""))
    now = result(("near", "%", 48, 50, ""), ("sum", "%", 97.5, 100, ""), ("cost", "ns", 50, 0, ""))
    changes, missing = regress.compare(before, now, 2)
    assert [(change.name, change.is_worse) for change in changes] == \
        [("near", True), ("sum", False), ("cost", True)]
    assert not missing     # 'no bar' is not compared
    assert regress.compare(before, result(), 2)[1] == ["near", "sum", "cost"]


def test_regress_allows_for_the_standard_error():
    """Of figures with a standard error, only a difference of several standard errors counts as worse."""
    def result(got, error):
        return {"cases": [{"name": "added", "unit": "ns", "got": got, "bar": "at most 30", "error": error}]}
    for got, is_worse in ((17.6, False), (18.4, True), (10, False)):
        (change,), _ = regress.compare(result(14.3, 0.8), result(got, 1.0), 2)
        assert change.is_worse is is_worse, change
    (change,), _ = regress.compare(result(14.3, 0), {"cases": [{"name": "added", "got": 14.7}]}, 2)
    assert change.is_worse


def test_a_baseline_must_be_a_result(tmp_path):
    for text in ("{}", "[]", "no", '{"version":1,"bench":"x","cases":[{"name":"a"}]}'):
        path = tmp_path / "f"
        path.write_text(text)
        with pytest.raises(Failed, match="--baseline"):
            regress.read(path)


def test_policies_that_a_build_lacks_are_skipped_with_the_reason(home, tmp_path):
    path = tmp_path / "policies.json"
    result = bench(home, "policies", "--quick", "--policies", "nope", "--sim", "h200", "--json", path)
    assert result.returncode == 0, result.stdout + result.stderr
    skip, = json.loads(path.read_text())["skipped"]
    assert skip["name"] == "nope" and "not offered by this build" in skip["reason"]


class NvmlOfProcesses:
    """As driver 580, which has samples of 100 processes at most and refuses less room. Two rows are of one process."""
    device = None

    def call(self, name, _, rows, count, since):
        size, at_us = count._obj, since.value + 1
        if rows is None or size.value < 100:
            size.value = 100
            raise Unavailable(name, sense.INSUFFICIENT_SIZE)
        for row, values in zip(rows, [(1, at_us + 5, 30), (1, at_us, 90), (2, at_us, 20), (3, at_us - 1, 40)]):
            row.pid, row.at_us, row.sm = values


def test_processes_are_read_with_the_room_that_nvml_wants():
    assert sense.Sensors(NvmlOfProcesses()).processes() == {"NVML processes": 50}


def test_sensors_answer_and_allots_is_judged(home, tmp_path):
    path = tmp_path / "sensors.json"
    result = bench(home, "sensors", "--quick", "--sim", "h200", "--json", path)
    assert path.exists(), result.stdout + result.stderr
    report = json.loads(path.read_text())
    rows = {row["name"]: row for row in report["cases"]}
    assert rows["sensors, NVML processes at 50 %: error"]["unit"] == "points", result.stdout
    assert [name for name, row in rows.items() if "bar" in row] == ["sensors, allot busy time at 50 %: error"]


def test_several_processes_are_one_tenant(home, tmp_path):
    path = tmp_path / "streams.json"
    result = bench(home, "many_streams", "--quick", "--sim", "h200", "--json", path)
    assert result.returncode in (0, 1), result.stdout + result.stderr
    rows = {row["name"]: row for row in json.loads(path.read_text())["cases"]}
    # Natively five processes share evenly; under allot two tenants do. Both figures are of the same seconds: a tenant alone is
    # measured at another time, when the machine may be busy.
    many, one = (rows[f"many streams, {tenant}: work"]
                 for tenant in ("4 processes x 4 streams", "1 process, 1 stream"))
    assert many["native"] > 2 * one["native"]
    assert many["got"] < 1.5 * one["got"]


def test_statistics():
    times = [i * 0.1 for i in range(11)]
    rising = [20, 30, 58, 70, 63, 61, 59, 60, 60, 60, 60]
    assert stats.settling(times, rising, 60, 6, 0.5) == pytest.approx(0.4)
    assert stats.settling(times, rising, 60, 6, 0.9) is None
    assert stats.overshoot(rising, 20, 60) == 10 and stats.overshoot([70, 45], 100, 50) == 5
    assert stats.overshoot([20, 50], 20, 60) == 0
    assert stats.jain([20] * 5) == pytest.approx(1) and stats.jain([100, 0, 0, 0]) == 0.25
    assert stats.percentile(range(1, 101), 99) == 99 and stats.percentile([7], 99) == 7
    assert stats.within_pct([44, 45, 52], 45, 6) == pytest.approx(200 / 3)
    assert stats.sliding([1, 2, 3, 4], 2) == [1.5, 2.5, 3.5]
    assert stats.recommended([(1, 100, 1), (2, 96, 1), (4, 90, 1), (8, 99, 1)], 95, 0.99) == 2


def test_gaps_are_times_without_progress():
    assert stats.gaps([0, 1, 2, 3, 4, 5], [0, 5, 5, 5, 9, 9], 1.5) == [3]
    assert stats.gaps([0, 1, 2], [0, 1, 2], 1.5) == [] and stats.gaps([], [], 1) == []


@pytest.mark.parametrize("row, judge, limit, is_certain", [
    (Row("a", "%", 0.6, error=0.3), at_most, 1, True),
    (Row("a", "%", 0.6, error=0.4), at_most, 1, False),
    (Row("a", "x", 0.995, asked=1, error=0.004), at_least, 0.99, False),    # may be off by 0.01
    (Row("a", "x", 0.995, asked=1, error=0.003), at_least, 0.99, True),
    (Row("a", "%", 50, asked=50, runs=[45, 50, 55]), within, 1, False),     # the middle is right by chance
    (Row("a", "%", 50, asked=50, runs=[49.9, 50, 50.1]), within, 1, True),
    (Row("a", "%", 50, asked=50, runs=[50]), within, 1, True)])
def test_a_row_with_a_large_standard_error_does_not_pass(row, judge, limit, is_certain):
    judge(row, limit)
    assert row.passed is is_certain and (row.runs_needed is None) is is_certain
    assert ("uncertain: standard error" in row.bar) is not is_certain
    assert row.line().endswith("PASS" if is_certain else "UNCERTAIN")


def test_a_row_says_how_many_runs_settle_it():
    row = within(Row("a", "%", 50, asked=50, error=1.0, runs=[49, 50, 51]), 1)
    assert row.runs_needed == 27 and "about 27 runs settle it" in row.bar      # a third of the error needs nine times the runs
    assert row.json()["pass"] is False and row.json()["runs_needed"] == 27
    missed = at_most(Row("a", "%", 2, error=1.0), 1)
    assert missed.runs_needed is None and missed.line().endswith("FAIL") and "9 runs" in missed.bar
    assert at_most(Row("a", "%", 0, error=math.inf), 1).runs_needed == 2


def test_runs_are_merged_by_name():
    def run(share, native, limit, more):
        return [within(Row("share", "%", share, 50, native), 1), at_most(Row(f"latency: p99 of {more}", "ms", more), limit),
                Row("told", "", more), *([Row("rare", "", 1)] if more == 20 else [])]
    share, latency, told, rare = merged([run(49.6, 20, 30, 10), run(52, 21, 50, 20), run(50.2, 19, 40, 60)])
    assert (share.got, share.runs, share.asked, share.native) == (50.2, [49.6, 52, 50.2], 50, 20)
    assert share.runs_needed and not share.passed       # 52 is beyond the bar, but the median is judged
    assert (latency.got, latency.runs, latency.bar.split(";")[0]) == (20, [10, 20, 60], "at most 40")
    assert told.runs == [10, 20, 60] and told.bar is None and rare.runs is None
    by_hand = [Row("a", "", 1, bar="trains on", passed=passed) for passed in (True, False, True)]
    assert merged([[row] for row in by_hand])[0].passed is False


def test_a_bench_runs_as_often_as_asked(home, tmp_path):
    shutil.copy(Build(BUILD).program("start-cost"), home / "build")
    path = tmp_path / "start.json"
    result = bench(home, "start", "--quick", "--runs", "3", "--sim", "h200", "--json", path)
    assert result.returncode in (0, 1) and "-- medians of 3 runs" in result.stdout, result.stdout + result.stderr
    row = next(row for row in json.loads(path.read_text())["cases"] if "bar" in row)
    assert len(row["runs"]) == 3 and row["got"] == sorted(row["runs"])[1] and row["error"] >= 0
    brief = bench(home, "start", "--quick", "--runs", "1000", "--within", "5", "--sim", "h200", "--json", path)
    (skipped,) = json.loads(path.read_text())["skipped"]
    assert skipped["name"].endswith(" of 1000 runs") and "out of time" in skipped["reason"], brief.stdout


STUB = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void loaded(void)
{
	FILE *file = fopen(getenv("STUB_FILE"), "w");
	fprintf(file, "%s", getenv("STUB_LIMITS"));
	fclose(file);
}
"""


def test_a_rival_library_is_measured_in_the_same_run(home, tmp_path):
    library, path = tmp_path / "librival.so", tmp_path / "three.json"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", library, "-"], input=STUB, text=True, check=True)
    result = bench(home, "three", "--seconds", "1", "--sim", "h200", "--json", path, "--rival-library", library,
                   "--rival-environment", f"STUB_FILE={tmp_path}/{{name}}.txt,STUB_LIMITS={{memory_mib}}:{{cores_pct}}")
    assert path.exists(), result.stdout + result.stderr
    report = json.loads(path.read_text())
    assert report["rival_source"] == f"librival.so, SHA-256 {hashlib.sha256(library.read_bytes()).hexdigest()}"
    assert "--rival-library librival.so" in report["command"]
    assert {file.name: file.read_text() for file in tmp_path.glob("*.txt")} == {f"t{pct}.txt": f"4096:{pct}" for pct in (45, 30, 15)}
    # It limits nothing, so three programs share evenly.
    rivals = [row["rival"] for row in report["cases"] if "rival" in row]
    assert len(rivals) == 6 and all(20 < share < 50 for share in rivals), rivals


def test_cells_beyond_the_end_of_the_run_are_skipped():
    path = str(ROOT / "bench" / "run")
    loader = importlib.machinery.SourceFileLoader("bench_run", path)
    spec = importlib.util.spec_from_loader("bench_run", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    settings = module.Settings(1, 1, True, "", part=(1, 2), end=module.time.monotonic() + 50)
    skipped = []
    fake = types.SimpleNamespace(settings=settings, result=types.SimpleNamespace(
        rows=[types.SimpleNamespace(name="the first cell")], skip=lambda *arguments: skipped.append(arguments)))
    costs = {"a": 10, "b": 10, "c": 1000, "d": 10, "e": 10}
    assert list(module.Bench.cells(fake, costs, costs.get)) == ["a"]
    (what, why), = skipped
    assert what == "2 of 3 cells" and "the first cell" in why


# ---- allot-load

def load_lines(machine, *options):
    result = machine.run("--memory", "4GiB", "--cores", "50", "--", *machine.load(*options))
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_bursts_report_their_latencies(machine):
    *_, last = load_lines(machine, "--burst", 10, "--kernel-us", 500, "--period-ms", 50, "--seconds", 1)
    latency = last["latency_ms"]
    assert 15 <= latency["count"] <= 20 and last["kernels"] == 10 * latency["count"]
    assert 5 <= latency["p50"] <= latency["p90"] <= latency["p99"] <= latency["max"]


@pytest.mark.alone  # rates
def test_a_trace_is_followed(machine, tmp_path):
    trace = tmp_path / "t"
    trace.write_text("# of two\n0 0.3 0.6\n1 0 1\n0 0.9 1.0\n")
    *reports, last = load_lines(machine, "--trace", trace, "--seconds", 1.2, "--report-every", 0.1)
    assert [(phase["begin_s"], phase["end_s"]) for phase in last["phases"]] == [(0.3, 0.6), (0.9, 1.0)]
    assert all(phase["first_ms"] >= 1 for phase in last["phases"])
    # At the end of a phase a few milliseconds of work are queued. Between phases there is none.
    assert sum(report["kernels"] for report in reports if report["t_s"] <= 0.29) == 0
    assert sum(report["kernels"] for report in reports) == last["kernels"] > 50


def test_a_first_kernel_is_timed_while_the_launching_thread_waits(machine, tmp_path):
    """At 10 %, a kernel of 0.1 s is followed by 0.9 s of waiting, which ends after the phase."""
    trace = tmp_path / "t"
    trace.write_text("0 0.1 0.2\n0 3 3.2\n")
    tenant = machine.run("--memory", "1GiB", "--cores", 10, "--", *machine.load(
        "--trace", trace, "--kernel-us", 100000, "--seconds", 5, "--report-every", 60))
    assert tenant.returncode == 0, tenant.stderr
    phases = json.loads(tenant.stdout.splitlines()[-1])["phases"]
    assert all(100 <= phase["first_ms"] < 600 for phase in phases), phases


def test_reports_continue_while_a_launch_waits(machine):
    """At 5 % a launch waits for longer than a report's interval."""
    result = machine.run("--memory", "1GiB", "--cores", "5", "--",
                         *machine.load("--seconds", 1.5, "--report-every", 0.02))
    assert result.returncode == 0, result.stderr
    at = [line["t_s"] for line in map(json.loads, result.stdout.splitlines()) if "t_s" in line]
    assert len(at) >= 60, at


def test_a_short_last_report_has_no_rate(machine):
    """A kernel that ends in an interval shorter than itself would give a rate of several hundred percent."""
    program, _, *options = machine.load("--kernel-us", 20000, "--seconds", 1.1, "--report-every", 0.5)
    result = machine.run("--memory", "4GiB", "--", program, *options)
    assert result.returncode == 0, result.stderr
    *_, whole, last, _ = result.stdout.splitlines()
    assert whole.endswith("%") and last.endswith("kernels"), result.stdout


def test_kernels_limits_the_work(machine):
    lines = load_lines(machine, "--kernels", 150, "--seconds", 60, "--iters", 1000)
    assert lines[-1]["kernels"] == 150
    assert lines[-1]["elapsed_s"] < 30


@pytest.mark.alone  # shares
def test_cooperative_kernels_count_as_work(machine):
    """Under a cap of 50 %. If the launches were not counted, the share would be 100 %, or 0."""
    *_, last = load_lines(machine, "--cooperative", "--seconds", 1)
    assert 10 < last["share_pct"] < 60


def test_each_process_has_its_own_lines(machine):
    lines = load_lines(machine, "--processes", 3, "--streams", 2, "--seconds", 0.5)
    assert {line["id"] for line in lines if "elapsed_s" in line} == {0, 1, 2}


@pytest.mark.parametrize("text, wrong", [("0 1\n", "not ROW"), ("0 2 1\n", "begins"), ("1 0 1\n", "row 0"),
                                         ("0 0 2\n0 1 3\n", "before"), (None, "No such file")])
def test_a_bad_trace_is_refused_before_the_driver(tmp_path, text, wrong):
    trace = tmp_path / "t"
    if text is not None:
        trace.write_text(text)
    result = subprocess.run([BUILD / "allot-load", "--trace", trace], capture_output=True, text=True,
                            timeout=10, check=False)
    assert result.returncode == 2 and wrong in result.stderr, result.stderr


def loads_of(*options, more=()):
    return [Load(f"load{i}", Kernel(1000, 8192), one, more) for i, one in enumerate(options)]


CAPPED, SPACE = ["--cores", "50"], ["--sharing", "space"]


@pytest.mark.parametrize("loads, environment, sharing, wrong", [
    (loads_of(CAPPED, None), {}, None, True),
    (loads_of(CAPPED, None), {}, "space", False),
    (loads_of(SPACE, SPACE), {}, None, False),
    (loads_of(None, None), {"CUDA_MPS_PIPE_DIRECTORY": "/tmp/m"}, None, False),
    (loads_of(CAPPED, CAPPED, more=("--streams", "4")), {}, None, False)])
def test_more_work_than_one_gpu_can_do_fails(loads, environment, sharing, wrong):
    machine = types.SimpleNamespace(sim=None, sharing=sharing, native_environment=environment, gpu_index=0,
                                    build=types.SimpleNamespace(program=str))
    outcomes = [Outcome(52.6, [], {}), Outcome(52.6, [], {})]
    with pytest.raises(Failed, match="105 % .* at most 105 %") if wrong else contextlib.nullcontext():
        Loads(machine).check_sum(loads, outcomes)


def test_all_programs_use_the_chosen_gpu():
    def seen(job):
        job.check(60)
        return next((line.partition("=")[2] for line in job.text() if line.startswith("CUDA_VISIBLE_DEVICES=")), None)

    with Machine(Build(BUILD), "h200x2", 1) as machine:
        uuids = [device["uuid"] for device in machine.ps()["devices"]]
        assert (machine.gpu_index, machine.gpu_uuid) == (1, uuids[1])
        native, tenant = machine.native("native", ["env"]), machine.tenant("tenant", ["env"], ["--memory", "1GiB"])
        assert seen(native) == seen(tenant) == uuids[1]
        with plain_mps(machine):
            assert seen(machine.native("client", ["env"])) == uuids[1]
        machine.restart([])
        assert machine.tenant_device("idle")["uuid"] == uuids[1]
        machine.pin(False)
        assert seen(machine.native("native", ["env"])) is None


KILLED = """
import os, signal, sys
sys.path.append(sys.argv[1])
from harness.build import Build
from harness.machine import Machine
with Machine(Build(sys.argv[2]), "h200") as machine:
    print(machine.run_dir, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_bench_leaves_no_tenant():
    """The idle tenant ends with the bench; the daemon and the simulated GPU end soon after their last tenant."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ALLOT_")}
    run = subprocess.run([sys.executable, "-c", KILLED, ROOT / "bench", BUILD], text=True, stdout=subprocess.PIPE,
                         timeout=100, check=False, env=clean)
    assert run.returncode == -signal.SIGKILL
    run_dir = pathlib.Path(run.stdout.strip())
    wait_until(lambda: not processes_of(str(run_dir)), 20, "the end of the daemon and the simulated GPU")
    shutil.rmtree(run_dir)
