"""A process allocates memory without the library and falsifies its part of the tenant's report: NVML and the quota decide."""

import pathlib

import pytest

from machines import GIB, ROOT
from held import SIM, compile_c
from servers import start_servers
from test_violations import SETTINGS, log_of

PROGRAM = pathlib.Path(__file__).resolve().parent / "programs" / "past_hooks.c"


@pytest.fixture(scope="session")
def past_hooks(tmp_path_factory):
    """(program, a copy of the driver under a name that the library does not know)."""
    folder = tmp_path_factory.mktemp("past")
    copy = folder / "libmine.so.1"
    copy.write_bytes((SIM / "libcuda.so.1").read_bytes().replace(b"libcuda.so.1", b"libmine.so.1"))
    return compile_c(folder / "past", f"-I{ROOT}/src", PROGRAM, "-ldl"), copy


def start(machine, past_hooks, mib, mode, *options):
    """Starts past_hooks in tenant "thief"; returns the process once it has allocated `mib` MiB."""
    program, copy = past_hooks
    process = machine.start("--name", "thief", "--memory", "4GiB", *options, "--", program, copy,
                            str(mib), mode)
    assert process.stdout.readline() == "taken\n", process.stderr.read()
    return process


@pytest.mark.parametrize("mode", ["ledger", "fresh"])
def test_a_false_report_excuses_nothing(machine, tmp_path, past_hooks, mode):
    start_servers(machine, tmp_path, SETTINGS + "on_violation = end\n")
    process = start(machine, past_hooks, 40 * 1024, mode)
    assert process.wait(timeout=30) != 0
    log = log_of(machine)
    assert "more than its quota" in log or "more than the library counted" in log
    assert "is sent SIGTERM" in log


def test_memory_in_the_ledger_and_quota_is_allowed(machine, tmp_path, past_hooks):
    """Memory that the ledger contains and that fits the quota harms no other tenant."""
    start_servers(machine, tmp_path, SETTINGS + "on_violation = end\n")
    process = start(machine, past_hooks, 2048, "ledger")
    tenant = machine.wait_for_tenant("thief", lambda t: t["devices"][0]["memory_used_bytes"] >= 2 * GIB)
    for _ in range(20):
        tenant = machine.ps()["tenants"][0]
    assert tenant["violations"] == 0 and process.poll() is None
