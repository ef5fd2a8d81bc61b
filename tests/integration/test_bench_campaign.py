"""bench/campaign: its parts, and how it goes on."""

import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import threading

import pytest

from machines import BUILD, ROOT

CAMPAIGN = ROOT / "bench" / "campaign"


@pytest.fixture(scope="module")
def campaign():
    loader = importlib.machinery.SourceFileLoader("bench_campaign", str(CAMPAIGN))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_campaign", loader))
    sys.modules["bench_campaign"] = module      # for its dataclasses
    loader.exec_module(module)
    return module


def run(folder, *arguments):
    return subprocess.run([CAMPAIGN, "--build", BUILD, "--sim", "h200", "--quick", "--out", folder, *arguments],
                          capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, "ALLOT_COMMIT": "0123456789ab"})


def ends(folder):
    return {name: end["ended"] for name, end in json.loads((folder / "campaign.json").read_text())["parts"].items()}


def test_it_goes_on_where_it_stopped(tmp_path):
    # One bench needs no GPU, the other one that computes.
    only = ("--only", "start,resnet_half")
    too_short = run(tmp_path, *only, "--minutes", "0.1")
    assert too_short.returncode == 3 and too_short.stdout.endswith("2 are left\n"), too_short.stderr
    assert not (tmp_path / "campaign.json").exists()
    first = run(tmp_path, *only)
    assert first.returncode in (0, 1) and first.stdout.endswith("0 are left\n"), first.stdout + first.stderr
    assert ends(tmp_path)["resnet_half"] == "skipped" and ends(tmp_path)["start"] in ("passed", "failed")
    assert "start of a process" in (tmp_path / "start.txt").read_text()
    assert len(list(tmp_path.glob("*-start.json"))) == 1
    second = run(tmp_path, *only)
    assert second.returncode == first.returncode and "==" not in second.stdout
    listed = run(tmp_path, "--list")
    assert listed.returncode == 3 and "llm-open60" in listed.stdout and "tests-progress" in listed.stdout


def test_it_mixes_no_commits(tmp_path):
    (tmp_path / "campaign.json").write_text(json.dumps({"commit": "ba9876543210", "gpu": "x", "parts": {}}))
    refused = run(tmp_path, "--only", "start")
    assert refused.returncode == 1
    assert refused.stderr == (f"bench/campaign: {tmp_path} has results of commit ba9876543210, and this is 0123456789ab: "
                              "name another --out\n")


def test_it_names_unknown_parts(tmp_path):
    refused = run(tmp_path, "--only", "nothing")
    assert refused.returncode == 1
    assert refused.stderr == "bench/campaign: --only: no part is named 'nothing'; --list lists them\n"


@pytest.mark.parametrize("status, text, ended", [
    (0, "x PASS\n3 passed, 0 failed\n", "passed"),
    (1, "2 passed, 1 failed\n", "failed"),
    (0, "-- a: skipped: no PyTorch here\n0 passed, 0 failed\n", "skipped"),
    (0, "2 of 4 cells skipped: out of time (--within); the last measured: b\n2 passed, 0 failed\n", "cut off"),
    (2, "a usage error\n", "cut off"),
    (-9, "x PASS\n", "cut off"),
    (0, "ok a\n7 passed, 0 failed, 1 skipped\n", "passed")])
def test_how_a_part_ended(campaign, status, text, ended):
    assert campaign.end_of_output(status, text)["ended"] == ended


def test_parts_fit_into_ten_minutes(campaign):
    """Benches with cells are cut, and each scene of the bench llm is a part."""
    parts = campaign.all_parts(campaign.argparse.Namespace(minutes=10, quick=False, only=None))
    assert not [part.name for part in parts if part.seconds > 600]
    assert len({part.name for part in parts}) == len(parts)
    assert {part.name for part in parts if part.command[1] == "llm"} == {f"llm-{scene}" for scene in campaign.LLM}
    assert set(campaign.LLM) == set(campaign.parse_scenes(",".join(campaign.LLM))) and set(campaign.TESTS) == groups_of_tests()


def test_some_benches_run_three_times_if_that_fits(campaign):
    runs = {case.name: campaign.bench_parts(case, False, 600)[0].command[-2:] for case in campaign.CASES if case.name != "llm"}
    often = {name for name, words in runs.items() if words == ("--runs", "3")}
    assert often == set(campaign.REPEATED) - {"space"}
    assert runs["space"] == ("--runs", "2") and "--runs" not in runs["matrix"]
    assert campaign.bench_parts(campaign.CASES[0], True, 600)[0].command == ("bench/run", "cap")


def test_parts_run_on_several_gpus_at_once(campaign, monkeypatch, tmp_path):
    """The longest first, and one at a time on each GPU. Parts that need all GPUs or no neighbours come last, one by one."""
    parts = [campaign.Part(name, ("bench/run", name), seconds, gpus) for name, seconds, gpus in (
        ("short", 1, 1), ("calls", 5, 1), ("long", 4, 1), ("middle", 3, 1), ("pair of GPUs", 2, 2), ("too long", 999, 1))]
    began, ended, running, lock = [], [], {}, threading.Lock()
    both_run = threading.Barrier(2, timeout=60)

    def run_part(part, _options, _left_s, gpu, is_beside_others=False):
        with lock:
            assert gpu not in running and (is_beside_others or not running)
            running[gpu] = part.name
            began.append(part.name)
        if part.name in ("long", "middle"):
            both_run.wait()
        with lock:
            del running[gpu]
            ended.append(part.name)
        return {"ended": "passed", "passed": 1, "failed": 0, "status": 0}

    monkeypatch.setattr(campaign, "run_part", run_part)
    journal = campaign.Journal(tmp_path, "0123456789ab", "x")
    campaign.run_parts(parts, campaign.argparse.Namespace(gpus=(2, 5), sim=None), journal, campaign.time.monotonic() + 100)
    assert set(began[:2]) == {"long", "middle"} and began[2:] == ["short", "calls", "pair of GPUs"]
    assert set(ends(tmp_path)) == set(began)


@pytest.mark.parametrize("gpus, said", [("0,0", "'0,0': not indices"), ("a", "'a': not indices"), ("0,", "'0,': not indices")])
def test_it_refuses_wrong_gpus(tmp_path, gpus, said):
    refused = run(tmp_path, "--gpus", gpus)
    assert refused.returncode == 2 and said in refused.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_command_finds_one_gpu_alone():
    """one_gpu leaves out the device files of other GPUs, and the command can't make them anew."""
    make = "mount -t tmpfs -o mode=755 tmpfs /dev; mknod -m 666 /dev/null c 1 3; mkdir /dev/shm; "
    make += "for index in 91 92; do mknod /dev/nvidia$index c 1 3; done; "
    look = "ls /dev/nvidia[0-9]* 2>/dev/null && test -d /dev/shm && ! mknod /dev/nvidia7 c 195 7 2>/dev/null"
    found = subprocess.run(["unshare", "--mount", "sh", "-c", make + '"$@"', "sh", ROOT / "bench/harness/one_gpu", "92",
                            "sh", "-c", look], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (0, "/dev/nvidia92\n", "")


def groups_of_tests():
    listed = subprocess.run([ROOT / "tests" / "gpu" / "run", "--help"], capture_output=True, text=True, check=True).stdout
    block = listed.partition("in this order:\n")[2].partition("\n\n")[0]
    return {line.split()[0] for line in block.splitlines()}
