"""Tenants whose doorbells do not reach the daemon, because its kernel is too old or doorbells are lost. They must share the GPU
as others do; the daemon only polls more often."""

import json
import time

import pytest
from held import compile_c

pytestmark = pytest.mark.alone  # shares


def last_report(process, seconds=40):
    out, err = process.communicate(timeout=seconds)
    assert process.returncode == 0, err
    return json.loads(out.strip().splitlines()[-1])


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("shim") / "unheard.so", "-shared", "-fPIC", "unheard.c",
                     "-ldl")


def shares(machine, first_command, environment):
    """Returns got_1s_pct of two equal tenants, in the middle of their work."""
    load = machine.load("--seconds", "6")
    options = ("--cores", "50", "--cores-limit", "100", "--memory", "4GiB", "--")
    first = machine.start("--name", "a", *options, *first_command, *load, environment=environment)
    machine.wait_for_tenant("a")
    second = machine.start("--name", "b", *options, *load, environment=environment)
    for name in ("a", "b"):
        machine.wait_for_tenant(name, lambda tenant: tenant["state"] in ("running", "waiting"))
    time.sleep(3)
    tenants = machine.tenants()
    got = [tenants[name]["devices"][0]["got_1s_pct"] for name in ("a", "b")]
    last_report(first)
    last_report(second)
    return got


def test_shares_with_a_kernel_without_futex_waitv(machine, shim):
    got = shares(machine, (), {"LD_PRELOAD": str(shim), "UNHEARD": "daemon"})
    assert all(35 <= part <= 65 for part in got), got


def test_shares_of_a_tenant_whose_doorbells_are_lost(machine, shim):
    got = shares(machine, ("sh", "-c", f'LD_PRELOAD="{shim} $LD_PRELOAD" UNHEARD=tenant exec "$@"', "sh"),
                 {})
    assert all(35 <= part <= 65 for part in got), got
