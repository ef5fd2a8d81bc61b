"""Priority, and guarantees that sum to more than 100 %, with real processes on the simulated GPU. The limits are wide, because
the test machine runs other programs, too. tests/unit/policy/lease has exact limits."""

import json
import time

import pytest


def last_report(process, seconds=40):
    """Waits for the load's end; returns (its last JSON line, its stderr)."""
    out, err = process.communicate(timeout=seconds)
    assert process.returncode == 0, err
    return json.loads(out.strip().splitlines()[-1]), err


def test_guarantees_over_100_percent_are_scaled(machine):
    first = machine.start("--name", "a", "--cores", "60", "--cores-limit", "100", "--memory", "4GiB",
                          "--", *machine.load("--seconds", "4"))
    machine.wait_for_tenant("a")
    second = machine.start("--name", "b", "--cores", "90", "--cores-limit", "100", "--memory", "4GiB",
                           "--", *machine.load("--seconds", "4"))
    tenant = machine.wait_for_tenant("b")
    assert tenant["devices"][0]["cores_pct"] == 90
    assert tenant["devices"][0]["cores_effective_pct"] == 60
    table = machine.allot("ps", *machine.sim)
    assert "60 (40)" in table.stdout and "90 (60)" in table.stdout
    _, err = last_report(second)
    assert "warning: GPU 0: all guarantees add up to 150 %: of the 90 % asked for, 60 % are guaranteed" in err
    _, err = last_report(first)
    assert "warning" not in err


def test_priority_can_be_set(machine):
    process = machine.start("--name", "a", "--priority", "5", "--memory", "4GiB", "--",
                            *machine.load("--seconds", "3"))
    assert machine.wait_for_tenant("a")["priority"] == 5
    result = machine.allot("set", "a", "--priority", "-3", *machine.sim)
    assert result.returncode == 0, result.stderr
    assert "priority -3" in result.stdout
    assert machine.tenants()["a"]["priority"] == -3
    result = machine.allot("set", "a", "--priority", "101", *machine.sim)
    assert result.returncode != 0 and "101" in result.stderr
    last_report(process)


@pytest.mark.alone  # shares
def test_priority_gives_no_share(machine):
    """A tenant of high priority whose load never stops is limited to its guarantee, beside a tenant of normal priority."""
    high = machine.start("--name", "high", "--priority", "50", "--cores", "30", "--cores-limit", "100",
                         "--memory", "4GiB", "--", *machine.load("--seconds", "8"))
    low = machine.start("--name", "low", "--cores", "70", "--cores-limit", "100",
                        "--memory", "4GiB", "--", *machine.load("--seconds", "8"))
    for name in ("high", "low"):
        machine.wait_for_tenant(name, lambda tenant: tenant["state"] in ("running", "waiting"))
    time.sleep(4)
    got = {name: tenant["devices"][0]["got_1s_pct"] for name, tenant in machine.tenants().items()}
    assert 20 <= got["high"] <= 40, got
    assert 55 <= got["low"] <= 78, got
    last_report(high)
    last_report(low)
