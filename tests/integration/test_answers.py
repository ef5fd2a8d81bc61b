"""cuGetProcAddress must answer in a tenant as the simulated driver does: runs the group `answers` of tests/gpu/run, and
checks that its program finds a difference if there is one."""

import json
import subprocess
import sys

from machines import BUILD, ROOT
from held import SIM

sys.path.append(str(ROOT / "bench"))
from harness.build import Build     # noqa: E402


def ask(machine, **environment):
    """(its status, what it says)"""
    result = machine.run("--memory", "1GiB", "--", Build(BUILD).program("gpu-answers"),
                         environment=environment)
    assert result.returncode in (0, 1) and not result.stderr, result.stderr
    return result.returncode, json.loads(result.stdout)


def test_the_answers_are_the_drivers():
    result = subprocess.run(
        [sys.executable, ROOT / "tests/gpu/run", "--build", BUILD, "--sim", "h200", "--only",
         "answers"], capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.endswith("1 passed, 0 failed, 0 skipped\n"), result.stdout


def test_a_form_of_a_newer_driver_is_all_that_differs(machine):
    """It is refused, and seen to be: twice by both functions, with three values of the flags, before
    cuInit and after it."""
    status, said = ask(machine, ALLOT_SIM_FUTURE="1")
    assert status == 1 and said["differ"] == 24
    assert len(said["first"]) == 20
    for difference in said["first"]:
        assert (difference["name"], difference["version"]) == ("cuMemAlloc", 13010)
        assert difference["expected"]
        # "Not found" is a status of the second version, and a failure of the first, which writes nothing.
        assert difference["our_pfn"] == (None if difference["function"].endswith("_v2") else "left as it was")
    status, said = ask(machine, ALLOT_SIM_FUTURE="1", ALLOT_UNKNOWN="pass")
    assert status == 0 and said["differ"] == 0 and said["first"] == []


def test_without_the_library_nothing_is_compared():
    result = subprocess.run([Build(BUILD).program("gpu-answers")], capture_output=True, text=True,
                            timeout=60, check=False, env={"LD_LIBRARY_PATH": str(SIM)})
    assert result.returncode == 2 and "nothing is interposed" in result.stderr, result
