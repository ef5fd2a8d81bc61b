"""The benches of trainings: their arithmetic, the answers of a training process, and each bench from end to end on the
simulated GPU, with sim_training.py instead of PyTorch. Whether a bench meets its bars is not tested here."""

import contextlib
import io
import json
import math
import subprocess
import sys
import types
from pathlib import Path

import pytest
from machines import BUILD, ROOT

sys.path.append(str(ROOT / "bench"))
from cases import arrivals, training, under_policies        # noqa: E402
from cases.epochs import by_rounds, expected_s      # noqa: E402
from harness import provenance, stats, trainer      # noqa: E402
from harness.build import Build                     # noqa: E402
from harness.bypass import standing_aside           # noqa: E402
from harness.job import Failed                      # noqa: E402
from harness.machine import Machine                 # noqa: E402
from harness.pairs import Pairs, by_turns, until_known           # noqa: E402
from harness.result import Row, file_stem, within_pct       # noqa: E402
from harness.trainer import record_together, series_of      # noqa: E402
from load.trainings.serve import Server, merge, serve   # noqa: E402
from load.trainings.steps import end_of_ranks       # noqa: E402

SIM_TRAINING = Path(__file__).parent / "sim_training.py"


# ---- arithmetic

class HalfTrainer:
    """A tenant's steps take 10 ms, and native ones 5 ms; the first native epoch is slow."""
    def __init__(self, _, name, options=None):
        self.name, self.commands, self.is_native = name, [], options is None
        self.native_epochs = 0

    def ask(self, *words):
        self.commands.append(words)
        if words[0] == "bypass":
            self.is_native = words[1] == 1

    def steps_in(self, seconds):
        return int(seconds / 0.010)

    def epoch_s(self, steps):
        if not self.is_native:
            return steps * 0.010
        self.native_epochs += 1
        return steps * 0.005 * (1.5 if self.native_epochs == 1 else 1)

    def end(self):
        self.commands.append("ended")


@pytest.mark.parametrize("can_bypass", [False, True])
def test_a_training_at_half_is_compared_in_pairs(monkeypatch, can_bypass):
    made = []
    monkeypatch.setattr(training, "standing_aside", lambda machine: contextlib.nullcontext(can_bypass))
    monkeypatch.setattr(training, "Trainer", lambda *words: made.append(HalfTrainer(*words)) or made[-1])
    monkeypatch.setattr(training, "ready", lambda trainers: None)
    monkeypatch.setattr(training, "take_models", lambda trainers, models: None)
    result = types.SimpleNamespace(rows=[], charts=[], add=lambda row: result.rows.append(row))
    training.trainings_half(types.SimpleNamespace(
        settings=types.SimpleNamespace(training_seconds=8, training_rounds=3), result=result, bar=lambda real, _: real,
        machine=None))
    assert [row.name for row in result.rows] == [f"{model}, batch {batch}, at 50 %, waits: {when}: step over native"
                                                 for model, batch in training.HALVED for _, when, _ in training.WAITS]
    first = result.rows[0]      # One of its three pairs has the slow epoch.
    assert first.runs == pytest.approx([2 / 1.5, 2, 2]) and first.got == pytest.approx(2)
    assert first.runs_needed > 3 and not first.passed       # three such pairs do not tell much
    assert not any("standard error" in row.bar for row in result.rows[1:])
    assert len(made) == (1 if can_bypass else 2)
    for one in made:
        assert [words for words in one.commands if words[0] == "sync"] == 3 * [("sync", 1), ("sync", 10), ("sync", 0)]
        assert one.commands[-1] == "ended"


def test_pairs_measure_overhead_despite_drift():
    pairs = Pairs()
    for i in range(9):
        slow = 1 + i / 10       # a drift that is far larger than the overhead
        pairs.add(100 * slow, 100.5 * slow)
    assert pairs.median_pct() == pytest.approx(0.5, abs=0.01)
    assert pairs.error_pct() < 0.1
    pairs.add(140, 400)         # one disturbed pair changes little
    assert pairs.median_pct() == pytest.approx(0.5, abs=0.02)


def test_pairs_are_taken_until_their_median_is_precise():
    def taken(noise, error_pct):
        asked = []

        def take(count):
            asked.append(count)
            return [(100, 100 + noise * (i % 3 - 1)) for i in range(count)]
        return until_known(take, 16, 40, error_pct), asked

    pairs, asked = taken(0.1, 0.06)
    assert asked == [1, 16] and len(pairs.native) == 16 and pairs.median_pct() == 0
    pairs, asked = taken(5, 0.06)
    assert asked == [1, 16, 16, 8] and len(pairs.native) == 40 and pairs.error_pct() > 0.06


def test_the_error_of_a_median_falls_with_the_root_of_the_number():
    values = [1, 2, 3, 4, 5]
    assert stats.error_of_median(values) == pytest.approx(0.929 * 2 / math.sqrt(5))
    assert stats.error_of_median(values * 16) == pytest.approx(stats.error_of_median(values) / 4,
                                                               rel=0.1)
    assert stats.error_of_median([7] * 3) == 0 and stats.error_of_median([7]) == math.inf


def test_turns_alternate_until_the_median_is_precise():
    order = []

    def side(name, *times):
        left = list(times)

        def measure():
            order.append(name)
            return left.pop(0) if left else times[-1]
        return measure
    # The first pair is always discarded.
    pairs = by_turns(side("n", 900, 100), side("t", 9, 101), 2, 10, 0.5)
    assert pairs.native == [100, 100] and pairs.median_pct() == pytest.approx(1)
    assert "".join(order) == "tnnttn"

    noisy = by_turns(side("n", 100), side("t", *range(100, 140, 3)), 2, 7, 0.5)
    assert len(noisy.native) == 7 and noisy.error_pct() > 0.5


def test_epoch_time_is_inverse_to_a_quota_below_the_demand():
    assert expected_s(10, 60, 30) == 20 and expected_s(10, 60, 10) == 60
    assert expected_s(10, 60, 60) == 10 and expected_s(10, 60, 61) == 10


def test_no_size_is_always_measured_first():
    order = []
    assert by_rounds(lambda size: order.append(size) or len(order), "abc", 2) == {"a": [1, 6], "b": [2, 4], "c": [3, 5]}
    assert "".join(order) == "abcbca"


def test_neighbours_arrive_after_every_third_epoch():
    told = []

    def neighbour(name, answer):
        return types.SimpleNamespace(name=name, say=lambda *words: told.append((name, *words)), answer=lambda _: answer,
                                     has_answered=lambda: False,
                                     job=types.SimpleNamespace(process=types.SimpleNamespace(poll=lambda: None)))

    target = types.SimpleNamespace(epoch_s=lambda steps: told.append("epoch") or float(steps + len(told)))
    models = (("resnet18", 128), ("gru", 1024))
    found = arrivals.epochs_beside(target, [neighbour("a", {}), neighbour("b", {})], models, 10)
    train = ("measure", arrivals.TRAINS_S)
    assert told == [*3 * ["epoch"], ("a", "model", "resnet18", 128), ("a", *train), *3 * ["epoch"],
                    ("b", "model", "gru", 1024), ("b", *train), *3 * ["epoch"]]
    assert [len(epochs) for epochs in found] == [3, 3, 3]
    with pytest.raises(Failed, match="a: gru, batch 1024: no memory"):
        arrivals.epochs_beside(target, [neighbour("a", {"model": "gru", "batch": 1024, "error": "no memory"})], models, 10)
    assert arrivals.loss([10, 10, 10], [11, 11, 11]) == (pytest.approx(10), 0)


def test_a_bench_is_repeated_under_each_policy(monkeypatch):
    """A policy that is refused, or fails, does not keep the others from being measured."""
    class Machine:
        def __init__(self):
            self.tenant_environment, self.told = {}, []

        def restart(self, options):
            tuning = self.tenant_environment.get("ALLOT_TUNING")
            self.told.append((*options, Path(tuning).read_text() if tuning else None))
            if options[1:] == ["nope"]:
                raise Failed("no such policy")

    def measured_with(*names):
        skipped, prefixes = [], []
        bench_ = types.SimpleNamespace(machine=Machine(), settings=types.SimpleNamespace(policies=names),
                                       result=types.SimpleNamespace(bench="b", skip=lambda *words: skipped.append(words)))

        def measure(prefix):
            prefixes.append(prefix)
            if prefix == "token: ":
                raise Failed("ended")
        under_policies.by_policies(bench_, measure)
        return bench_, prefixes, skipped

    assert measured_with()[1] == [""]
    bench_, prefixes, skipped = measured_with("nope", "token", "feedback-p-nvml")
    assert bench_.result.bench == "b-nope+token+feedback-p-nvml" and prefixes == ["token: ", "feedback-p-nvml: "]
    assert skipped == [("nope", "not offered by this build: no such policy"), ("token: the rest", "ended")]
    assert ("--policy", "feedback", "feedback_control = p\nfeedback_sensor = nvml\n") in bench_.machine.told
    assert bench_.machine.told[-1] == (None,) and not bench_.machine.tenant_environment


def test_a_bar_in_percent_of_the_request():
    assert within_pct(Row("r", "s", 20.5, 20), 3).passed
    assert not within_pct(Row("r", "s", 19.3, 20), 3).passed


def test_steps_are_counted_in_the_common_window():
    answer = {"began_at": 100.1, "ends_s": [0.4, 0.9, 1.4, 1.9, 2.4]}
    series = series_of(answer, 100)
    # 0.5 s a step: two from 1 to 2 s, though none of them ends there.
    assert series.rate(1, 2) == pytest.approx(2)
    with pytest.raises(Failed, match="late"):
        series_of(answer, 90)


def test_a_record_reaches_the_end_of_its_window(monkeypatch):
    """The training begins at the given time, and stops right after the given seconds."""
    class Prompt:
        def say(self, _, seconds, at):
            self.answered = {"began_at": float(at), "ends_s": [seconds / 2, seconds]}

        def answer(self, _):
            return self.answered

    monkeypatch.setattr(trainer.time, "time", lambda: 100.0004)
    (answer,) = record_together([Prompt()], 3)
    assert answer["series"].rate(1.5, 3) == pytest.approx(1 / 1.5)


def test_ranks_answer_as_one():
    ranks = [{"steps": 5, "step_ms_max": 9.0, "elapsed_s": 1.0},
             {"steps": 5, "step_ms_max": 12.0, "elapsed_s": 0.9}]
    assert merge(ranks) == {"steps": 5, "step_ms_max": 12.0, "elapsed_s": 1.0}
    assert merge([*ranks, {"error": "a"}]) == {"error": "a"}


# ---- a training process

class Fake:
    size = "3 pixels"

    def launch(self):
        pass

    def wait(self):
        pass

    def memory(self):
        return {"total_bytes": 7}


def answers_to(*lines):
    """Returns the answers to these lines, of a training process in which a batch of 99 does not fit."""
    out = io.StringIO()
    server = Server(lambda _, batch: (None, "out of memory") if batch == 99 else (Fake(), None))
    serve(server.obey, [line + "\n" for line in lines], out)
    ready, *answers = [json.loads(line) for line in out.getvalue().splitlines()]
    assert ready == {"ready": True}
    return answers


def test_a_training_obeys_its_commands():
    model, steps, pause, slow, record = answers_to("model gru 4", "steps 3", "pause 5", "measure 0.02",
                                                   "record 0.05 1")
    assert model["fits"] and model["input"] == "3 pixels" and model["total_bytes"] == 7
    assert steps["steps"] == 3 and pause["pause_ms"] == 5
    assert slow["step_ms_mean"] >= 5 and slow["elapsed_s"] >= 0.02
    assert len(record["ends_s"]) == record["steps"] and record["ends_s"][-1] >= 0.05
    assert record["late_s"] > 1e6       # the given time was long ago


def test_a_process_survives_out_of_memory():
    refused, none, fits, steps = answers_to("model gru 99", "steps 1", "model gru 1", "steps 1")
    assert refused["fits"] is False and refused["error"] == "out of memory"
    assert "no model" in none["refused"] and fits["fits"] and steps["steps"] == 1


@pytest.mark.parametrize("line, wrong", [
    ("dance", "'dance'"), ("steps", "steps takes 1"), ("steps many", "'many'"), ("steps 0", "'0'"),
    ("model none 4", "'none'"), ("model gru 0", "'0'"), ("measure nan", "'nan'"),
    ("pause -1", "'-1'")])
def test_bad_lines_are_refused_and_named(line, wrong):
    *_, answer = answers_to("model gru 4", line)
    assert wrong in answer["refused"]


def test_ranks_stop_at_the_same_step():
    stop = types.SimpleNamespace(value=0)
    first, second = (end_of_ranks(rank, stop)(1.0) for rank in (0, 1))
    assert second(5, 1.2) and first(4, 0.9)     # only rank 0's clock counts
    assert first(5, 1.1) and stop.value == 6
    assert second(5, 1.2) and not second(6, 1.3) and not first(6, 1.3)


# ---- end to end

def bench(tmp_path, name, *options, sim="h200"):
    """Returns (exit status, {name: row}, printed text). Checks the form of the result and its plots."""
    path = tmp_path / "result.json"
    result = subprocess.run(
        [sys.executable, ROOT / "bench" / "run", name, "--quick", "--build", BUILD, "--sim", sim,
         "--torch-load", SIM_TRAINING, "--json", path, *options],
        capture_output=True, text=True, timeout=150, check=False)
    output = result.stdout + result.stderr
    assert result.returncode in (0, 1) and "not measured" not in output, output
    found = json.loads(path.read_text())
    faults = provenance.faults_of(found, file_stem(found) + ".json") if found["cases"] else []
    assert not [fault for fault in faults if "command" not in fault]
    return result.returncode, {row["name"]: row for row in found["cases"]}, output


@pytest.mark.alone  # durations of epochs
def test_a_target_as_others_arrive(tmp_path):
    _, rows, output = bench(tmp_path, "arrivals", "--policies", "lease,feedback-pid")
    for policy in ("lease", "feedback-pid"):
        name = f"{policy}: transformer, batch 256, 50 %, beside"
        assert [len(rows[f"{name} {count}: epoch"]["runs"]) for count in (0, 1, 2)] == [3, 3, 3], output
        assert rows[f"{name} 0: epoch"]["asked"] == pytest.approx(2 * rows[f"{name} 0: epoch"]["native"], rel=0.01)
        # Natively the others take time from it.
        assert rows[f"{name} 2: epoch longer than alone"]["native"] > 30, output
    assert "skipped" not in output, output


def test_overhead_of_a_quota_that_does_not_bind(tmp_path):
    _, rows, output = bench(tmp_path, "models_overhead")
    beside = rows["resnet18, 128 x samples: added, beside native processes"]
    assert len(beside["runs"]) == 2 and "at most" in beside["bar"], output
    added = rows["resnet18, 128 x samples: added"]
    assert added["unit"] == "%" and -50 < added["got"] < 50, output
    assert next(row["got"] for name, row in rows.items() if "its standard error, 3 pairs of" in name) >= 0
    assert rows["mean of 1: added"]["got"] == added["got"]


@pytest.mark.alone  # durations of epochs: a process without CPU time saves up its quota
def test_epochs_follow_the_quota(tmp_path):
    _, rows, output = bench(tmp_path, "epoch_quota")
    demand = rows["native: GPU busy, by events"]["got"]
    assert 40 < demand < 80, output
    epochs = {pct: next(row for name, row in rows.items() if name == f"wants 60 %, quota {pct} %: epoch")
              for pct in (30, 60, 100)}
    before, after = epochs[100]["native"], rows["wants 60 %, native again at the end: epoch"]["got"]
    if after > 1.25 * before:
        pytest.skip(f"other programs used the CPUs: {before:g} s natively before, {after:g} after")
    assert epochs[30]["got"] > 1.4 * epochs[100]["got"], output
    assert epochs[30]["asked"] == pytest.approx(epochs[30]["native"] * demand / 30, rel=0.01)
    assert epochs[100]["asked"] == epochs[100]["native"]
    assert all(len(row["runs"]) == 3 for row in epochs.values())


def test_epochs_under_memory_quotas_and_an_error_under_too_small_a_one(tmp_path):
    _, rows, output = bench(tmp_path, "epoch_memory")
    error = next(row for name, row in rows.items() if name.endswith("an error after"))
    assert error["pass"], output
    judged = [row for name, row in rows.items() if name.endswith("of that with 64 GiB")]
    assert len(judged) == 3 and all(len(row["runs"]) == 2 for row in judged), output


def test_three_trainings_at_once(tmp_path):
    _, rows, output = bench(tmp_path, "seed_models", "--seconds", "2")
    got = [next(row["got"] for name, row in rows.items()
                if name.startswith(model) and "steps a" in name)
           for model in ("resnet18", "transformer", "gru")]
    # On a busy machine the host limits the first two, and its speed decides which of them does more of its native steps.
    assert min(got[:2]) > got[2] > 5, output


@pytest.mark.alone
def test_a_job_over_two_gpus_beside_one_on_each(tmp_path):
    _, rows, output = bench(tmp_path, "ddp_half", "--seconds", "2", sim="h200x2")
    shares = [row["got"] for name, row in rows.items() if name.endswith("steps a second")]
    assert len(shares) == 3 and all(20 < share < 80 for share in shares), output
    assert sum("longest step" in name for name in rows) == 3


def test_one_gpu_is_too_few_for_a_job_over_two(tmp_path):
    status, rows, output = bench(tmp_path, "ddp_half")
    assert status == 0 and not rows and "skipped: one GPU" in output


def test_bypassed_steps_are_not_charged():
    """models_overhead compares a tenant with itself: while its library is bypassed nothing is charged, and afterwards it is
    again."""
    with Machine(Build(BUILD), "h200") as machine, standing_aside(machine) as can:
        assert can
        job = machine.tenant("aside", [sys.executable, SIM_TRAINING, "--serve"], ["--memory", "2GiB"], stdin=True)
        lines = iter(range(1000))

        def ask(line):
            job.say(line)
            return json.loads(job.wait_line(next(lines), 60))

        def used_s():
            return machine.tenant_device("aside")["used_s"]

        assert json.loads(job.wait_line(next(lines), 60)) == {"ready": True}
        assert ask("model resnet18 32")["fits"]
        used, steps = [], []
        for is_bypassed in (0, 1, 0):
            assert ask(f"bypass {is_bypassed}") == {"bypass": bool(is_bypassed)}
            before = used_s()
            steps.append(ask("steps 20")["elapsed_s"])
            used.append(used_s() - before)
        assert "refused" in ask("bypass 2")
        # In each of the three pairs, one untimed step and ten timed ones are charged: those with the library.
        before = used_s()
        turns = ask("turns 3 10")
        assert len(turns["aside_s"]) == len(turns["with_s"]) == 3
        with_s = 1.1 * sum(turns["with_s"])
        assert 0.8 * with_s < used_s() - before < 1.5 * with_s
        assert "refused" in ask("turns 0 10") and "refused" in ask("turns 3")
    print([f"{value:.3f}" for value in used], [f"{value:.3f}" for value in steps])
    assert used[0] > 0.9 * steps[0] and used[2] > 0.9 * steps[2]
    assert used[1] < 0.1 * steps[1]
