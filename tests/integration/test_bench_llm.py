"""The bench of LLM servers: the server's loop and schedule, the computed figures, and all ways to share the GPU, on the
simulated GPU with sim_llm_server.py instead of PyTorch. Only a real GPU gives meaningful figures."""

import json
import subprocess
import sys
import types
from pathlib import Path

import pytest
from machines import BUILD, ROOT

sys.path.append(str(ROOT / "bench"))
from cases import llm, llm_figures                                               # noqa: E402
from load.llm_server import Batch, Server, poisson_arrivals         # noqa: E402

HERE = Path(__file__).parent


class Clock:
    """A clock and an engine in virtual time."""
    prefill_s, decode_s = 0.010, 0.005

    def __init__(self):
        self.t = 0.0

    def now(self):
        return self.t

    def sleep(self, seconds):
        self.t += seconds

    def prefill(self, _):
        self.t += self.prefill_s

    def decode(self):
        self.t += self.decode_s


def served(seconds, arrivals=None, slots=8, tokens=64):
    """Returns a Batch that has served for so many seconds of virtual time."""
    clock = Clock()
    batch = Batch(clock, slots, tokens, arrivals, clock.now, clock.sleep)
    batch.serve(0.0, seconds)
    return batch


def test_poisson_arrivals_have_their_rate_and_seed():
    times = poisson_arrivals(50, 200, 1)
    assert len(times) == pytest.approx(10000, rel=0.05) and times == sorted(times)
    gaps = [b - a for a, b in zip(times, times[1:])]
    assert sum(gap > 0.02 for gap in gaps) / len(gaps) == pytest.approx(0.368, abs=0.02)
    assert times == poisson_arrivals(50, 200, 1) != poisson_arrivals(50, 200, 2)


def test_a_closed_loop_stays_full_and_its_requests_end_one_by_one():
    batch = served(10)
    later = [step for step in batch.steps if step[0] > 1]
    assert sum(tokens < 7 for *_, tokens in later) == 0
    # 63 steps, and the prefills of the seven others meanwhile.
    ended = [r for r in batch.requests if r.end is not None and r.arrived > 1]
    assert all(r.end - r.first == pytest.approx(63 * 0.005 + 7 * 0.010, abs=0.011) for r in ended)
    assert all(r.first - r.arrived == pytest.approx(0.010) for r in ended)


def test_an_open_loop_waits_for_arrivals_and_for_a_slot():
    batch = served(2, [0.5, 0.5, 0.5], slots=2, tokens=4)
    first, second, third = batch.requests
    assert first.first == pytest.approx(0.51) and second.first == pytest.approx(0.52)
    # Four tokens are a prefill and three steps; then there is a slot.
    assert first.end == pytest.approx(0.535) and third.first == pytest.approx(0.545)
    assert served(1, [0.2, 5.0]).requests[-1].arrived == 0.2


def test_figures_cover_the_window_only(tmp_path):
    batch = served(4)
    batch.write(tmp_path / "events")
    lines = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    figures = llm_figures.server_figures(lines, 1, 3)
    # 64 tokens of 8 requests: 8 prefills of 10 ms, and 63 to 64 steps of 5 ms.
    assert figures["tokens_s"] == pytest.approx(8 * 64 / (8 * 0.010 + 63.5 * 0.005), rel=0.03)
    assert figures["step_p50"] == pytest.approx(5) and figures["step_max"] == pytest.approx(5)
    assert figures["first_p50"] == pytest.approx(10) and figures["unserved"] == 0


def test_a_request_without_a_token_counts_as_waiting():
    lines = [{"step": [1.0, 1.5], "tokens": 1}, {"request": 1.0, "first": 1.1, "end": None},
             {"request": 1.2, "first": None, "end": None}]
    figures = llm_figures.server_figures(lines, 1, 2)
    assert figures["unserved"] == 1 and figures["first_p99"] == pytest.approx(300)
    with pytest.raises(llm.Failed, match="--seconds"):
        llm_figures.server_figures(lines, 5, 6)


def test_shares_are_of_the_time_that_the_work_takes_alone(tmp_path):
    batch = served(4)
    batch.write(tmp_path / "events")
    lines = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    alone = {"prefill_p50": 10, "step_p50": 5}
    assert all(end - begin == pytest.approx(0.010) for begin, end in llm_figures.prefills(lines))
    assert llm_figures.share_of(lines, 1.003, 3.001, alone) == pytest.approx(1, abs=1e-3)
    assert llm_figures.share_of(lines, 1, 3, {"prefill_p50": 4, "step_p50": 2}) == pytest.approx(0.4, abs=1e-3)
    assert llm_figures.share_of(lines, 3.9, 4.4, alone) == pytest.approx(0.2, abs=0.03)
    assert llm_figures.server_figures(lines, 1, 3)["busy"] == pytest.approx(1, abs=1e-3)
    waits = served(2, [0.5, 1.5], slots=1, tokens=1)
    waits.write(tmp_path / "events")
    lines = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    assert llm_figures.prefills(lines) == [pytest.approx((0.5, 0.51)), pytest.approx((1.5, 1.51))]


def test_pause_compares_each_server_with_itself():
    in_place = {"share": 0.5, "share_apart": 0.96, "busy": 0.98, "step_alone": 5.0, "step_apart": 5.2}
    returns = {"share": 0.5, "share_back": 0.49, "step_before": 10.0, "step_back": 10.1}
    found = llm.together([in_place, returns], None)
    assert found == {"apart": pytest.approx(5.0 / 5.2), "returned": pytest.approx(10.0 / 10.1)}
    rows = {row.name: row.passed for row in llm.judged("pause", llm.TWO_4B, {"lend": {"apart": 0.97, "returned": 0.99}}, None)}
    assert list(rows.values()) == [False, True]


def test_a_step_counts_where_it_begins():
    lines = [{"step": [0.9, 1.1], "tokens": 8}, {"step": [1.1, 1.15], "tokens": 8}, {"step": [1.99, 2.04], "tokens": 8},
             {"step": [2.0, 2.5], "tokens": 8}, {"request": 1.0, "first": 1.5, "end": None}]
    assert llm.mean_step_ms(lines, 1, 2) == pytest.approx(50)
    with pytest.raises(llm.Failed):
        llm.mean_step_ms(lines, 3, 4)


def test_each_run_measures_every_way(monkeypatch):
    """A run for which there is no time is left out; the others keep their length. A way that failed is not tried again."""
    order, skipped, cells = [], [], []

    def measure_run(_, way, members, names, run, found, alone):
        if way == "mps" and len(members) == 2 and names == ["servers"]:
            raise llm.Failed("no MPS")
        order.append((run, names[0], way))
        found[names[0]].setdefault(way, []).append([])
    monkeypatch.setattr(llm, "measure_run", measure_run)
    for quiet in ("report", "add_rows", "add_charts"):
        monkeypatch.setattr(llm, quiet, lambda *_: None)

    def in_time(all_cells, seconds):
        cells.extend(all_cells)
        assert all(seconds(cell) > 0 for cell in cells)
        return cells[:3]
    settings = types.SimpleNamespace(scenes=("servers", "training"), ways=("turns", "mps", "native", "turns-priority"), runs=2, quick=False,
                                     settle_s=0.5, seconds=2)
    bench = types.SimpleNamespace(settings=settings, cells=in_time, result=types.SimpleNamespace(
        skip=lambda *arguments: skipped.append(arguments)))
    with pytest.raises(llm.Failed, match="some ways failed: mps"):
        llm.llm(bench)
    assert len(cells) == 4 and skipped == [("servers: mps", "no MPS")]
    assert order == [(0, "servers", "native"), (0, "servers", "turns"),
                     *((0, "training", way) for way in ("native", "turns", "mps", "turns-priority")),
                     (1, "servers", "native"), (1, "servers", "turns")]


def test_only_measured_ways_are_judged():
    def of(total, p99):
        return {"sum": total, "step_p99": p99}
    found = {"native": of(100, 10), "turns": of(99, 12)}
    rows = {row.name: row for row in llm.judged("servers", llm.TWO_4B, found, None)}
    assert [row.passed for row in rows.values()] == [False, True]
    assert rows["servers, turns: step p99 over native's"].got == pytest.approx(1.2)
    assert not list(llm.judged("servers", llm.TWO_4B, {"turns": of(1, 1)}, None))


def test_lending_beside_a_training_is_judged_against_mps_without_limits():
    found = {way: {"of_alone": total, "step_p99": p99, "tokens_s": 1, "steps_s": 1}
             for way, total, p99 in (("mps", 1.27, 13.0), ("mps-split", 1.30, 8.6), ("lend", 1.26, 12.5))}
    rows = {row.name: row.passed for row in llm.judged("training", llm.BESIDE, found, None)}
    assert rows == {"training, lend: work of all against alone over mps's": True, "training, lend: step p99 over mps's": True}


def test_scenes_with_the_same_servers_share_their_processes():
    together, beside = llm.groups(["servers", "training", "open60"])
    assert together[1] == ["servers", "open60"] and beside[1] == ["training"]
    assert len(llm.set_of(llm.TWO_4B)) == 1 and llm.set_of(llm.BESIDE) == list(llm.BESIDE)


@pytest.mark.parametrize("line", ["serve 1 2", "serve x 2 f", "serve 1 2 f 5", "serve 1 2 f 0 1", "dance 1 2 f"])
def test_a_server_refuses_a_bad_line(line):
    assert line in Server(Clock(), 8, 64).obey(line)["refused"]


def bench(path, *options):
    run = subprocess.run(
        [sys.executable, ROOT / "bench/run", "llm", "--build", BUILD, "--sim", "h200", "--torch-load", HERE / "sim_training.py",
         "--llm-server", HERE / "sim_llm_server.py", "--json", path, *options],
        text=True, capture_output=True, timeout=200, check=False)
    assert path.exists(), run.stdout + run.stderr
    return {row["name"]: row for row in json.loads(path.read_text())["cases"]}, run.stdout + run.stderr


@pytest.mark.alone    # a process that starts late makes its way fail
def test_every_way_of_two_servers(tmp_path):
    rows, output = bench(tmp_path / "llm.json", "--seconds", "1", "--settle", "0.2", "--runs", "1", "--scenes",
                         "servers,open60,pause", "--ways", "alone,native,lend")
    for way in ("native", "lend"):
        for scene in ("servers", "open60"):
            row = rows[f"{scene}, {way}: sum"]
            assert row["got"] > 100 and len(row["runs"]) == 1, output
            assert rows[f"{scene}, {way}: step p99"]["got"] >= 2, output
        assert 0.5 < rows[f"pause, {way}: {llm.LABELS['apart']}"]["got"] < 1.5, output
        assert len(rows[f"pause, {way}: {llm.LABELS['returned']}"]["runs"]) == 1, output
    assert "servers, turns-priority: sum" not in rows
    busy = rows["servers, alone, llm1: GPU at work, by NVML"]
    assert 10 < busy["got"] <= 100 and len(busy["runs"]) == 1, output
    assert 1 <= rows["servers: the most work of all against alone, by turns"]["got"] <= 2, output


def test_the_most_work_of_all_by_turns():
    """A server that leaves a fifth of the time unused when it is alone, and a training that leaves none."""
    assert llm.most_of_alone(llm.BESIDE, [{"gpu_busy": 80}, {"gpu_busy": 100}]) == pytest.approx(0.4 / 0.8 + 0.6)
    assert llm.most_of_alone(llm.BESIDE, [{"gpu_busy": 20}, {"gpu_busy": 100}]) == pytest.approx(1.6)


@pytest.mark.alone    # rates of processes in turns of half a second
def test_eager_servers_are_compared_in_turns(tmp_path):
    """Only ways that share by time, without MPS and priorities, are compared in turns."""
    assert llm.by_turns(("native", "mps", "turns", "turns-priority", "lend"), ("eager",)) == ["native", "turns"]
    assert llm.by_turns(("native", "lend"), ("eager",)) == llm.by_turns(("native", "turns"), ("servers",)) == []
    rows, output = bench(tmp_path / "llm.json", "--seconds", "1", "--quick", "--runs", "2", "--scenes", "eager", "--ways",
                         "native,turns")
    assert all(len(rows[f"eager, {way}: sum"]["runs"]) == 2 for way in ("native", "turns")), output
    assert rows["eager, turns: sum"]["got"] > 0.5 * rows["eager, native: sum"]["got"] > 0, output


def test_a_server_beside_a_training(tmp_path):
    rows, output = bench(tmp_path / "llm.json", "--seconds", "1", "--runs", "1", "--scenes", "training", "--ways",
                         "alone,native,turns-priority")
    # Ten kernels of a millisecond.
    assert rows["training, alone, train: training step"]["got"] >= 9, output
    assert rows["training, turns-priority: work of all against alone"]["got"] > 0.5, output
