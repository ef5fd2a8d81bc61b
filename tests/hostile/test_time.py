"""Processes that use the GPU's time without being charged for it: the driver's figures show it, and the daemon ends them."""

import pathlib
import subprocess
import sys
import time

import pytest

from held import PROGRAMS, SIM, compile_c, link_with_driver
from machines import ROOT, UNPAID, wait_until
from servers import start_servers
from test_violations import log_of

sys.path.append(str(ROOT / "bench"))
from cases.over_time import READING     # noqa: E402

PROGRAM = pathlib.Path(__file__).resolve().parent / "programs" / "past_gate.c"


@pytest.fixture(scope="session")
def past_gate(tmp_path_factory):
    """(program, a copy of the driver under a name that the library does not know)."""
    folder = tmp_path_factory.mktemp("gate")
    copy = folder / "libmine.so.1"
    copy.write_bytes((SIM / "libcuda.so.1").read_bytes().replace(b"libcuda.so.1", b"libmine.so.1"))
    return compile_c(folder / "past", PROGRAM, "-ldl"), copy


def start_victim(machine, *load):
    return machine.start("--name", "victim", "--cores", 50, "--cores-limit", 100, "--", *machine.load(*load))


def begun(machine, program, *terms, seconds=60):
    machine.has_thief = True
    process = machine.start("--name", "thief", *terms, "--", *program, seconds)
    assert process.stdout.readline() == "begun\n", process.stderr.read()
    return process


@pytest.mark.parametrize("load", [("--seconds", 60), ("--seconds", 60, "--burst", 5)], ids=["saturating", "bursts"])
def test_launches_past_the_gate_are_ended(machine, tmp_path, past_gate, load):
    start_servers(machine, tmp_path, "on_violation = end\n")
    start_victim(machine, *load)
    machine.wait_for_tenant("victim", lambda tenant: tenant["devices"][0]["got_1s_pct"] > 1)
    thief = begun(machine, past_gate, "--cores", 10, "--cores-limit", 10)
    begin = time.monotonic()
    assert thief.wait(timeout=60) != 0
    print(f"ended after {time.monotonic() - begin:.1f} s")
    assert [line.split("'")[1] for line in log_of(machine).splitlines() if UNPAID in line] == ["thief"]
    assert machine.tenants()["victim"]["violations"] == 0


def test_a_hidden_process_is_found_while_the_other_rests(machine, tmp_path, past_gate):
    """The driver leaves the busiest process out of its list, as driver 580 does."""
    start_servers(machine, tmp_path, "on_violation = end\n", card="defects = loses-busy-process\n")
    thief = begun(machine, past_gate, "--cores", 10, "--cores-limit", 10)
    assert thief.wait(timeout=60) != 0
    assert UNPAID in log_of(machine)


def test_a_relay_of_processes_without_the_library_is_found(machine, tmp_path, past_gate):
    """Each process lives for less time than several censuses take."""
    start_servers(machine, tmp_path, "census_interval = 2s\n")
    start_victim(machine, "--seconds", 60)
    machine.has_thief = True
    program, copy = past_gate
    relay = f"while :; do env -u LD_PRELOAD {program} {copy} 1 > /dev/null; done"
    machine.start("--name", "thief", "--cores", 10, "--cores-limit", 10, "--", "sh", "-c", relay)
    wait_until(lambda: UNPAID in log_of(machine), what="a violation")
    assert "tenant 'victim'" not in log_of(machine).split(UNPAID)[0].rpartition("\n")[2]


@pytest.mark.alone  # shares
def test_honest_tenants_of_all_kinds_are_not_accused(machine, tmp_path):
    start_servers(machine, tmp_path, "on_violation = end\n")
    loads = [machine.start("--name", f"tenant{i}", "--cores", cores, "--cores-limit", limit, "--",
                           *machine.load("--seconds", 15, *load))
             for i, (cores, limit, load) in enumerate([
                 (40, 100, ()), (20, 20, ("--blocks", 132)), (10, 10, ("--burst", 5)), (10, 100, ("--burst", 50))])]
    for load in loads:
        assert load.wait(timeout=120) == 0, load.stderr.read()
    assert UNPAID not in log_of(machine)


@pytest.mark.alone  # shares
def test_tenants_beside_a_native_program_are_not_accused(machine, tmp_path):
    """By chance, samples may miss the native program for a while and find only the tenants."""
    start_servers(machine, tmp_path, "on_violation = end\nlog_level = debug\n")
    native = {**machine.environment, "LD_LIBRARY_PATH": str(SIM), "ALLOT_SIM_SOCKET": str(machine.run_dir / "sim.sock")}
    with subprocess.Popen(machine.load("--seconds", 40), env=native, stdout=subprocess.DEVNULL) as program:
        loads = [machine.start("--name", f"tenant{cores}", "--cores", cores, "--cores-limit", cores, "--",
                               *machine.load("--seconds", 20)) for cores in (10, 20)]
        for load in loads:
            assert load.wait(timeout=120) == 0, load.stderr.read()
        program.terminate()
    readings = READING.findall(log_of(machine))
    assert {name for name, *_ in readings} >= {"tenant10", "tenant20"}
    assert all(int(certain) < 250 for _, certain, _ in readings), "half of what a violation needs"


@pytest.mark.alone  # shares
def test_neighbours_that_claim_to_work_accuse_nobody(machine, tmp_path):
    """The charge for an honest tenant's work is divided among it and the liars, so it uses more than it is charged for."""
    start_servers(machine, tmp_path, "on_violation = end\n")
    program = compile_c(tmp_path / "liar", f"-I{PROGRAMS}", f"-I{ROOT}/src", PROGRAM.with_name("liar.c"), *link_with_driver())
    honest = machine.start("--name", "honest", "--cores", 10, "--cores-limit", 10, "--", *machine.load("--seconds", 15))
    for i in range(4):
        liar = machine.start("--name", f"liar{i}", "--cores", 1, "--cores-limit", 1, "--", program, 60)
        assert liar.stdout.readline() == "begun\n", liar.stderr.read()
    assert honest.wait(timeout=120) == 0, honest.stderr.read()
    assert UNPAID not in log_of(machine)
