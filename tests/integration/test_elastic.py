"""Elastic limits in wall time on the simulated GPU. Bounds are wide, because the test machine has few cores.
tests/unit/policy/lease/rules/test_lend_trace.c checks the policy in virtual time with exact bounds."""

import subprocess

import pytest

from machines import BUILD, wait_until

pytestmark = pytest.mark.alone  # shares

TERMS = ("--memory", "4GiB", "--cores", "30")
MILLISECOND_KERNELS = ("--kernel-us", "1000")


def device(machine, name):
    return machine.tenants()[name]["devices"][0]


def wait_for_device(machine, name, condition, seconds, what):
    return wait_until(lambda: condition(device(machine, name)), seconds, what)


def start_owner(machine, seconds, *options):
    """Starts a tenant of 30 % that is idle until it reads a line, and then runs a load for so many seconds. It stays until
    end_load()."""
    load = machine.load(*MILLISECOND_KERNELS, "--seconds", seconds, *options)
    return machine.start(*TERMS, "--name", "owner", "--", "sh", "-c",
                         'read -r line; "$@" && echo end && read -r line', "sh", *load,
                         stdin=subprocess.PIPE)


def start_capped(machine, *terms):
    return machine.start_load(*TERMS, *terms, "--name", "capped",
                              load=(*MILLISECOND_KERNELS, "--seconds", 3))


def charged(machine, tenant, name):
    share, _ = machine.end_load(tenant, name)
    assert share.is_sound(), share
    return share.charged_pct


def test_idle_time_is_lent_and_comes_back(machine):
    owner = start_owner(machine, 3, "--report-every", "0.5")
    machine.wait_for_tenant("owner")
    borrower = machine.start(*TERMS, "--elastic", "on", "--name", "borrower", "--",
                             *machine.load(*MILLISECOND_KERNELS, "--seconds", 60))
    machine.wait_for_tenant("borrower", lambda tenant: tenant["elastic"])

    # 40 are unpromised, and of the owner's 30 a tenth is kept. So the limit rises to 97, in steps of 30.
    wait_for_device(machine, "borrower", lambda d: d["cores_limit_now_pct"] > 90, 15, "the lent part")
    wait_for_device(machine, "borrower", lambda d: d["got_1s_pct"] > 60, 10, "its use")
    lent = device(machine, "borrower")
    assert lent["cores_limit_pct"] == 30 and lent["elastic_reason"] == "lent"
    assert lent["lent_pct"] == pytest.approx(lent["cores_limit_now_pct"] - 30, abs=0.02)
    assert device(machine, "owner")["spare_pct"] == pytest.approx(27, abs=1)
    assert device(machine, "owner")["cores_limit_now_pct"] == 30
    assert "30+6" in machine.allot("ps", *machine.sim).stdout

    # The log is written once a second.
    wait_until(lambda: "lent (others leave time unused)" in (machine.run_dir / "allotd.log").read_text(), 10,
               "the log of what is lent")
    owner.stdin.write("go\n")
    owner.stdin.flush()
    reclaimed = wait_for_device(machine, "borrower",
                                lambda d: d["elastic_reason"] == "reclaimed" and d, 10, "a reclaim")
    assert reclaimed["cores_limit_now_pct"] < 95
    share, reports = machine.end_load(owner, "owner")
    # The owner gets its time back within its first half second.
    assert 100 * reports[0]["work_s"] / reports[0]["t_s"] > share.work_pct / 3, reports
    assert share.is_sound() and 24 < share.charged_pct < 36, share

    log = (machine.run_dir / "allotd.log").read_text()
    assert "'borrower': GPU 0: its limit of GPU time is now " in log and "lent (others leave time unused)" in log
    assert "reclaimed (others need their time again)" in log

    done = machine.allot("set", "borrower", "--elastic", "off", *machine.sim)
    assert done.returncode == 0, done.stderr
    off = device(machine, "borrower")
    assert off["cores_limit_now_pct"] == 30 and off["elastic_reason"] == "off" and not off["lent_pct"]
    assert not machine.tenants()["borrower"]["elastic"]
    borrower.terminate()


def test_without_elastic_the_cap_is_hard(machine):
    start_owner(machine, 1)
    machine.wait_for_tenant("owner")
    assert 24 < charged(machine, start_capped(machine), "capped") < 36


def test_an_explicit_limit_caps_lending(machine):
    capped = start_capped(machine, "--cores-limit", "40", "--elastic", "on")
    machine.wait_for_tenant("capped", lambda tenant: tenant["state"] == "waiting")
    seen = device(machine, "capped")
    assert seen["cores_limit_now_pct"] == 40 and seen["elastic_reason"] == "off"
    assert 32 < charged(machine, capped, "capped") < 46


@pytest.mark.parametrize("line, says", [
    ("elastic = yes", "'yes': must be on or off"),
    ("elastic_limit = 120", "'120'"),
])
def test_bad_settings_are_refused(tmp_path, line, says):
    file = tmp_path / "allotd.conf"
    file.write_text(line + "\n")
    done = subprocess.run([BUILD / "allotd", "--check-config", file], capture_output=True, text=True,
                          timeout=20, check=False)
    assert done.returncode == 1
    assert line.split()[0] in done.stderr and says in done.stderr


def test_set_needs_on_or_off(machine):
    done = machine.allot("set", "a", "--elastic", "maybe", *machine.sim)
    assert done.returncode == 2 and "'maybe'" in done.stderr
