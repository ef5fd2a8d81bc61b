"""The benches of --sharing space on the simulated GPU, with a stand-in for MPS. All three ways are measured, --sharing appears
in the result, and the time until a woken tenant has its guarantee is right. Only a real GPU gives meaningful figures."""

import json
import subprocess
import sys
import types

import pytest
from machines import BUILD, ROOT

sys.path.append(str(ROOT / "bench"))
from cases import CASES, space_lend     # noqa: E402
from harness.load import Series         # noqa: E402
from harness.result import Result       # noqa: E402


def bench(*arguments, timeout=200):
    return subprocess.run([sys.executable, ROOT / "bench/run", "--build", BUILD, "--sim", "h200", *map(str, arguments)],
                          text=True, capture_output=True, timeout=timeout, check=False)


def test_space_lends_and_mps_alone_does_not(tmp_path):
    path = tmp_path / "lend.json"
    run = bench("space_lend", "--quick", "--seconds", 4, "--json", path)
    assert path.exists(), run.stdout + run.stderr
    row, = json.loads(path.read_text())["cases"]
    # MPS alone never lends. The bench measures how much allot lends; here it must only be clearly more.
    assert row["mps"] < 45 and row["got"] > 1.3 * row["mps"] and row["native"] == 100


def test_cases_without_space_sharing_give_the_reason():
    run = bench("start", "oversubscribe", "space_wake", "--sharing", "space")
    assert run.returncode == 0, run.stdout + run.stderr
    reasons = {case.name: case.not_space for case in CASES}
    for name in ("start", "oversubscribe", "space_wake"):
        assert f"-- {name}: skipped: --sharing space: {reasons[name]}" in run.stdout


@pytest.mark.parametrize("sharing, name, in_json", [(None, "sim-x-three", None), ("time", "sim-x-three", None),
                                                    ("space", "sim-x-three-space", "space")])
def test_the_result_names_the_sharing(sharing, name, in_json):
    machine = types.SimpleNamespace(gpu="X", gpu_index=0, gpu_uuid="GPU-0", driver="1", sim="h200", sharing=sharing)
    result = Result("three", machine, None, "", "bench/run three")
    assert result.stem("f") == f"f/{result.date}-{name}"
    assert result.json().get("sharing") == in_json


def series(rate, begin_s):
    """Returns reports of every 2 ms: no kernels until begin_s, and `rate` kernels a second afterwards."""
    return Series({"t_s": i * 0.002, "kernels": rate * 0.002 if i * 0.002 > begin_s + 1e-9 else 0} for i in range(1, 1000))


def test_time_until_the_guarantee():
    # Alone it does 1000 a second, so its guarantee of 70 % is 700, measured over the last 10 ms.
    at_once = space_lend.until_guarantee_ms(series(1000, 1.0), 1000, 1.0)
    later = space_lend.until_guarantee_ms(series(1000, 1.04), 1000, 1.0)
    assert at_once == pytest.approx(10, abs=1) and later == pytest.approx(47, abs=2)
    never = space_lend.until_guarantee_ms(series(600, 1.0), 1000, 1.0)
    assert never == pytest.approx(1e3 * space_lend.BUSY_S, abs=2)
