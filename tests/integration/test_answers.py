"""cuGetProcAddress must answer in a tenant as the simulated driver does: runs the group `answers` of tests/gpu/run, and checks
that its program finds a difference if there is one."""

import json
import subprocess
import sys

from machines import BUILD, ROOT
from held import SIM

sys.path.append(str(ROOT / "bench"))
from harness.build import Build     # noqa: E402


def ask(machine, **environment):
    """Returns (exit status, decoded output) of the program in a tenant."""
    result = machine.run("--memory", "1GiB", "--", Build(BUILD).program("gpu-answers"),
                         environment=environment)
    assert result.returncode in (0, 1) and not result.stderr, result.stderr
    return result.returncode, json.loads(result.stdout)


def test_tenants_get_the_answers_of_the_driver():
    result = subprocess.run(
        [sys.executable, ROOT / "tests/gpu/run", "--build", BUILD, "--sim", "h200", "--only",
         "answers"], capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.endswith("1 passed, 0 failed, 0 skipped\n"), result.stdout


def test_only_versions_of_a_newer_driver_differ(machine):
    """The unknown version is refused, in 24 calls: two of each of two functions, with three values of the flags, before cuInit
    and after it."""
    status, output = ask(machine, ALLOT_SIM_FUTURE="1")
    assert status == 1 and output["differ"] == 24
    assert len(output["first"]) == 20
    for difference in output["first"]:
        assert (difference["name"], difference["version"]) == ("cuMemAlloc", 13010)
        assert difference["expected"]
        # cuGetProcAddress_v2 returns "not found" as a status. The first version fails, and writes nothing.
        assert difference["our_pfn"] == (None if difference["function"].endswith("_v2") else "left as it was")
    status, output = ask(machine, ALLOT_SIM_FUTURE="1", ALLOT_UNKNOWN="pass")
    assert status == 0 and output["differ"] == 0 and output["first"] == []


def test_without_the_library_nothing_is_compared():
    result = subprocess.run([Build(BUILD).program("gpu-answers")], capture_output=True, text=True,
                            timeout=60, check=False, env={"LD_LIBRARY_PATH": str(SIM)})
    assert result.returncode == 2 and "nothing is interposed" in result.stderr, result
