"""All policies, with real processes on the simulated GPU. The limits are wide: they show that a policy works, and not how
exactly. tests/unit/policy/lease has tighter limits in virtual time."""

import time

import pytest

pytestmark = pytest.mark.alone  # shares

POLICIES = ["lease", "feedback", "token"]


def start_capped(machine, policy, cores, *options):
    return machine.start_load("--policy", policy, "--memory", "1GiB", "--cores", cores,
                              load=options)


def end_and_get_charge(machine, tenant):
    """Waits for the load's end; returns the GPU time charged, in percent."""
    got, _ = machine.end_load(tenant)
    assert got.is_sound(), got
    return got.charged_pct


@pytest.mark.parametrize("policy", POLICIES)
def test_one_tenant_keeps_its_limit(machine, policy):
    """A limit of 30 % holds within 10 points over 6 s, including the first second of the token policy."""
    tenant = start_capped(machine, policy, 30, "--seconds", 6)
    machine.wait_for_tenant(f"p{tenant.pid}")
    (device,) = machine.ps()["devices"]
    assert device["policy"] == policy
    assert 20 < end_and_get_charge(machine, tenant) < 40


@pytest.mark.parametrize("policy", ["feedback", "token"])
def test_three_tenants_get_their_shares(machine, policy):
    """45, 30 and 15 %: each within 20 points, and in this order. Under feedback all three run at the same
    time, and the GPU's own time slicing costs about a tenth, or a third on a busy machine."""
    begin = time.time() + 2.5
    tenants = [start_capped(machine, policy, cores, "--seconds", 8, "--start-at", begin)
               for cores in (45, 30, 15)]
    got = [end_and_get_charge(machine, tenant) for tenant in tenants]
    assert got == sorted(got, reverse=True), got
    for asked, part in zip((45, 30, 15), got):
        assert abs(part - asked) < 20, got


def test_a_daemon_has_one_policy_at_a_time(machine):
    first = machine.start("--policy", "token", "--", "sleep", "60")
    machine.wait_for_tenant(f"p{first.pid}")
    refused = machine.run("--policy", "feedback", "--", "true")
    assert refused.returncode == 125
    assert "'feedback'" in refused.stderr and "'token'" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    # The daemon's own policy, or none, is accepted.
    assert machine.run("--policy", "token", "--", "true").returncode == 0
    assert machine.run("--", "true").returncode == 0
    first.terminate()
    first.wait(timeout=10)
    # A private daemon without tenants is about to end: the next may have another policy.
    assert machine.run("--policy", "feedback", "--", "true").returncode == 0
    (device,) = machine.ps()["devices"]
    assert device["policy"] == "feedback"
