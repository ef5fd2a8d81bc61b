"""The check of bench/results: which files it refuses, and that it accepts what bench/run writes."""

import json
import re
import shutil
import subprocess
import sys
import types

import pytest
from machines import ROOT

sys.path.append(str(ROOT / "bench"))
from cases import llm, packing                          # noqa: E402
from harness import machine as harness_machine          # noqa: E402
from harness import collected, provenance               # noqa: E402
from harness.result import Result, Row, at_least        # noqa: E402
from harness.settings import Settings                   # noqa: E402

COMMIT = "0123456789ab"
HISTORY = {COMMIT + 28 * "0"}
NAME = "2026-12-05-nvidia-h200-three.json"


def written(**changes):
    """A result as bench/run writes it, with these changes; None removes a member."""
    machine = types.SimpleNamespace(gpu="NVIDIA H200", gpu_index=1, gpu_uuid="GPU-1", driver="580.1", sim=None, sharing=None)
    result = Result("three", machine, COMMIT, "HAMi-core", provenance.command_text(["three"]))
    result.rows = [Row("c", "%", 1, rival=2.0), at_least(Row("a", "%", 2.0, runs=[1.0, 2.0, 4.0]), 1), at_least(Row("a", "%", 2.0, error=0.1), 1), Row("b", "", 3, error=float("inf"))]
    values = {**result.json(), "date": "2026-12-05", **changes}
    return {name: value for name, value in values.items() if value is not None or name == "seed" and name not in changes}


def check(folder, result, name=NAME, history=HISTORY, exceptions=()):
    (folder / name).write_text(result if isinstance(result, str) else json.dumps(result))
    return provenance.check(folder, history, exceptions)


def version_1(**changes):
    old = written(version=1, command=None, **changes)
    del old["seed"]
    return old


def test_the_bench_writes_what_the_check_demands(tmp_path):
    result = written()
    assert result["command"] == "bench/run three" and result["seed"] is None
    assert ["runs_needed" in row for row in result["cases"]] == [False, True, False, False]
    assert "error" not in result["cases"][3]        # one value has no standard error
    assert (result["gpu_index"], result["gpu_uuid"]) == (1, "GPU-1")
    assert check(tmp_path, result) == []


def test_every_result_here_is_valid():
    history, _ = provenance.read_history(ROOT)
    assert provenance.check(collected.FOLDER, history) == []


@pytest.mark.parametrize("member", provenance.REQUIRED_OF_2)
def test_a_result_without_a_member_is_refused(tmp_path, member):
    result = written()
    del result[member]
    (fault,) = check(tmp_path, result)
    assert fault.startswith(NAME) and member in fault


@pytest.mark.parametrize("changes, wrong", [
    ({"version": 3}, "version 3: must be 1 to 2"),
    ({"version": True}, "version True"),
    ({"date": "2026-13-01"}, "date: "),
    ({"date": "20261205"}, "date: "),
    ({"date": "2026-12-06"}, "2026-12-06-nvidia-h200-three.json"),
    ({"gpu": "NVIDIA H100"}, "2026-12-05-nvidia-h100-three.json"),
    ({"bench": "cap"}, "2026-12-05-nvidia-h200-cap.json"),
    ({"simulated": True}, "2026-12-05-sim-nvidia-h200-three.json"),
    ({"sharing": "space"}, "2026-12-05-nvidia-h200-three-space.json"),
    ({"part": "1/2"}, "2026-12-05-nvidia-h200-three-part-1-of-2.json"),
    ({"commit": COMMIT + "-dirty"}, "files had changes"),
    ({"commit": COMMIT[:11]}, "12 to 40 hexadecimal digits"),
    ({"commit": "unknown"}, "12 to 40 hexadecimal digits"),
    ({"commit": "v1.0-5-g" + COMMIT}, "12 to 40 hexadecimal digits"),
    ({"commit": "ba9876543210"}, "neither HEAD nor main contains it"),
    ({"command": "./measure three"}, "command: "),
    ({"command": "bench/run three --json /home/me/three.json"}, "command: "),
    ({"command": "bench/run three --json=/home/me/three.json"}, "command: "),
    ({"command": "bench/run 'three"}, "command: "),
    ({"gpu_index": "1"}, "gpu_index: "),
    ({"seed": "1"}, "seed: "),
    ({"seed": -1}, "seed: "),
    ({"cases": []}, "cases: "),
    ({"cases": ["a"]}, "case '0': is not an object"),
    ({"note": "by hand"}, "the member 'note' is not known"),
])
def test_a_wrong_result_is_refused(tmp_path, changes, wrong):
    (fault,) = check(tmp_path, written(**changes))
    assert fault.startswith(NAME + ": ") and wrong in fault


@pytest.mark.parametrize("row, wrong", [
    ({"unit": "%", "got": 1}, "no member 'name'"),
    ({"name": "a", "unit": "%"}, "no member 'got'"),
    ({"name": "a", "unit": "%", "got": float("nan")}, "got: NaN"),
    ({"name": "a", "unit": "%", "got": 1, "bar": "at least 1"}, "'bar' and 'pass' go together"),
    ({"name": "a", "unit": "%", "got": 1, "bar": "at least 1", "pass": True, "runs_needed": 9}, "'runs_needed' is of a row"),
    ({"name": "a", "unit": "%", "got": 1, "runs": []}, "runs: []"),
    ({"name": "a", "unit": "%", "got": 1, "runs": [1, None]}, "runs: [1, null]"),
    ({"name": "a", "unit": "%", "got": 4, "runs": [1, 2, 3]}, "'got' is outside of 'runs'"),
    ({"name": "a", "unit": "%", "got": 1, "least": 0}, "the member 'least' is not known"),
])
def test_a_wrong_row_is_refused(tmp_path, row, wrong):
    (fault,) = check(tmp_path, written(cases=[row]))
    assert wrong in fault


@pytest.mark.parametrize("text", ["", "{", "[]", "2"])
def test_a_file_that_is_no_result_is_refused(tmp_path, text):
    assert len(check(tmp_path, text)) == 1


def test_version_1_is_accepted_only_from_before_version_2(tmp_path):
    (fault,) = check(tmp_path, version_1())
    assert "results from 2026-12-01 on need version 2" in fault
    (tmp_path / NAME).unlink()
    assert check(tmp_path, version_1(date="2026-11-30"), "2026-11-30-nvidia-h200-three.json") == []


def test_only_names_of_llm_may_have_more_words(tmp_path):
    more = NAME.replace(".json", "-turns.json")
    (fault,) = check(tmp_path, written(), more)
    assert NAME in fault
    (tmp_path / more).unlink()
    assert check(tmp_path, written(bench="llm", part="eager"), "2026-12-05-nvidia-h200-llm-eager-turns.json") == []


def test_an_exception_is_for_the_commit_of_one_file(tmp_path):
    assert check(tmp_path, written(commit=COMMIT + "-dirty"), exceptions={NAME: "old"}) == []
    (fault,) = check(tmp_path, written(date="2026-12-06"), exceptions={NAME: "old"})
    assert "2026-12-06" in fault
    (tmp_path / NAME).unlink()
    assert provenance.check(tmp_path, HISTORY, {NAME: "old"}) == [f"{NAME}: is not there; take it off EXCEPTIONS"]


def git(folder, *words):
    return subprocess.run(["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.com", *words],
                          capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(name="checkout")
def fixture_checkout(tmp_path):
    """A checkout of a branch `other`, which is behind main by one commit."""
    if not shutil.which("git"):
        pytest.skip("no git here")
    folder = tmp_path / "checkout"
    git(tmp_path, "init", "-q", "-b", "main", folder)
    (folder / "file").write_text("a")
    git(folder, "add", "file")
    git(folder, "commit", "-q", "-m", "one")
    git(folder, "branch", "other")
    git(folder, "commit", "-q", "--allow-empty", "-m", "two")
    git(folder, "checkout", "-q", "other")
    return folder


def test_history_is_of_head_and_main(checkout):
    git(checkout, "checkout", "-q", "-b", "left")
    git(checkout, "commit", "-q", "--allow-empty", "-m", "three")
    left = git(checkout, "rev-parse", "HEAD")
    git(checkout, "checkout", "-q", "other")
    history, note = provenance.read_history(str(checkout))
    assert note is None and history == {git(checkout, "rev-parse", "other"), git(checkout, "rev-parse", "main")}
    assert "neither HEAD nor main" in provenance.fault_of_commit(left[:12], history)


def test_without_history_only_the_form_of_a_commit_is_checked(checkout, tmp_path):
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{checkout}", shallow)
    (checkout / "copy").mkdir()
    for folder, why in ((shallow, "shallow"), (checkout / "copy", "checkout of its own"), (tmp_path, "no git checkout")):
        history, note = provenance.read_history(str(folder))
        assert history is None and why in note
    assert provenance.fault_of_commit("ba9876543210") is None
    assert provenance.fault_of_commit(COMMIT + "-dirty") and provenance.fault_of_commit(None)


def test_the_commit_names_changes_and_no_tag(checkout, monkeypatch):
    monkeypatch.delenv("ALLOT_COMMIT", raising=False)
    monkeypatch.setattr(harness_machine, "REPOSITORY", str(checkout))
    git(checkout, "tag", "-a", "v1", "-m", "one")
    head = git(checkout, "rev-parse", "HEAD")[:12]
    assert harness_machine.read_commit() == head
    (checkout / "file").write_text("b")
    assert harness_machine.read_commit() == head + "-dirty"


@pytest.mark.parametrize("words, text", [
    (["three", "--quick"], "bench/run three --quick"),
    (["--out", "", "x y"], "bench/run --out '' 'x y'"),
    (["--json", "/home/me/a.json"], "bench/run --json a.json"),
    (["--json=/home/me/a.json"], "bench/run --json=a.json"),
    (["--build", "/home/me/allot/build/"], "bench/run --build build"),
    (["--build", "/home/me/allot/"], "bench/run --build allot"),
    (["--build", "../build"], "bench/run --build ../build"),
    (["--json", "/"], "bench/run --json ''"),
])
def test_a_command_names_no_folder_of_the_machine(words, text):
    assert provenance.command_text(words, "/home/me/allot") == text
    assert provenance.is_command(text)


def test_arrivals_follow_the_seed():
    alone = {llm.kind(member): [{"tokens_s": 100.0}] for member in llm.TWO_4B}

    def seeds(seed, run):
        return [member_seed for _, member_seed in llm.arrivals_of(llm.SCENES["open60"], run, alone, seed)]
    assert seeds(0, 0) == [1, 2]        # as in results without a seed
    every = [one for seed in range(3) for run in range(3) for one in seeds(seed, run)]
    assert len(set(every)) == len(every)


def test_the_seed_of_cluster_packing_is_that_of_its_program():
    source = (ROOT / "bench" / "cluster_packing.c").read_text()
    assert re.search(r"#define SEED_FIRST (\d+)", source)[1] == str(packing.FIRST_SEED)


def test_parts_of_cluster_packing_measure_all_its_cells(monkeypatch):
    asked = []
    monkeypatch.setattr(packing, "measure", lambda _, *cell: asked.append(cell) or {})
    for part in ((1, 2), (2, 2)):
        settings = Settings.of(False)
        settings.part = part
        assert sum(packing.cell_seconds(settings, cell) for cell in settings.part_of(packing.CELLS)) < 540
        result = types.SimpleNamespace(charts=[])
        packing.cluster_packing(types.SimpleNamespace(settings=settings, result=result,
                                                      cells=lambda cells, _, settings=settings: settings.part_of(cells)))
    assert sorted(asked) == sorted((experiment, setting) for experiment in ("day", "fill") for setting in packing.SETTINGS)


def test_results_pages_refuses_a_wrong_file(tmp_path):
    for part in ("README.md", "docs/reference/results.md", "docs/pictures/measured.svg"):
        (tmp_path / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / part, tmp_path / part)
    shutil.copytree(ROOT / "bench", tmp_path / "bench", ignore=shutil.ignore_patterns("*.svg", "__pycache__"))

    def pages():
        return subprocess.run([sys.executable, tmp_path / "bench" / "results-pages", "--check"], capture_output=True, text=True,
                              check=False)
    right = pages()
    assert right.returncode == 0, right.stderr
    assert right.stdout == "commits of results are not checked: this is no git checkout\n"
    (tmp_path / "bench" / "results" / NAME).write_text(json.dumps(written(commit="unknown")))
    wrong = pages()
    assert wrong.returncode == 1 and wrong.stderr.startswith(f"bench/results/{NAME}: commit 'unknown'")
