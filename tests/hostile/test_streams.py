"""A program works on more streams than the library can record."""

import json
import pathlib
import subprocess
import time

import pytest

from held import PROGRAMS, compile_c, link_with_driver
from machines import BUILD

PROGRAM = pathlib.Path(__file__).resolve().parent / "programs" / "many_streams.c"


def gpu_time(machine):
    """(the simulated GPU's clock in us, {pid: time that the GPU worked for the process in us})."""
    done = subprocess.run([BUILD / "allot-sim", "--ctl", "--socket", machine.run_dir / "sim.sock", "stats"],
                          capture_output=True, text=True, check=True)
    stats = json.loads(done.stdout)
    return stats["now_us"], {client["pid"]: sum(card["busy_us"] for card in client["cards"]) for client in stats["clients"]}


@pytest.mark.alone  # shares
def test_many_streams_get_no_more_time_than_the_limit(machine, tmp_path):
    program = compile_c(tmp_path / "many_streams", f"-I{PROGRAMS}", PROGRAM, *link_with_driver())
    begin = time.time() + 5
    one = machine.start("--name", "one", "--cores", 50, "--cores-limit", 100, "--",
                        *machine.load("--seconds", 6, "--start-at", begin, "--blocks", 264))
    time.sleep(2)  # the load has calibrated itself on an idle GPU
    _, before = gpu_time(machine)
    many = machine.start("--name", "many", "--cores", 10, "--cores-limit", 10, "--", program, 4000, 12)
    assert many.stdout.readline() == "begun\n", many.stderr.read()
    time.sleep(max(0.0, begin + 0.5 - time.time()))
    start, first = gpu_time(machine)
    time.sleep(5)
    end, last = gpu_time(machine)
    time_pct = {pid: 100 * (last[pid] - first[pid]) / (end - start) for pid in last}
    print(f"% of the GPU's time: {time_pct}")
    (pid,) = set(last) - set(before)
    assert 0 < time_pct[pid] < 15, "not the tenant's 10 %"
    assert sum(time_pct.values()) - time_pct[pid] > 4 * time_pct[pid], "not the other tenant's share"
    assert many.poll() is None
    assert one.wait(timeout=120) == 0, one.stderr.read()
