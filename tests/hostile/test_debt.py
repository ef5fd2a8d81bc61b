"""A tenant launches one kernel of a second, and is made anew for each."""

import json
import subprocess
import time

import pytest

from machines import BUILD

WINDOW_S = 10


def busy_us(machine, pid):
    """(the simulated GPU's clock in us, time in us that the GPU worked for this process)."""
    done = subprocess.run([BUILD / "allot-sim", "--ctl", "--socket", machine.run_dir / "sim.sock", "stats"],
                          capture_output=True, text=True, check=True)
    stats = json.loads(done.stdout)
    return stats["now_us"], sum(card["busy_us"] for client in stats["clients"] if client["pid"] == pid
                                for card in client["cards"])


def share_of_victim(machine, pid, name):
    """`name`: that of the n-th tenant."""
    begin, before = busy_us(machine, pid)
    end = time.monotonic() + WINDOW_S
    count = 0
    while time.monotonic() < end:
        thief = machine.start("--name", name(count), "--cores", 20, "--cores-limit", 100, "--",
                              *machine.load("--kernel-us", 1000000, "--blocks", 264, "--kernels", 1))
        assert thief.wait(timeout=60) == 0, thief.stderr.read()
        count += 1
    now, after = busy_us(machine, pid)
    return 100 * (after - before) / (now - begin)


@pytest.mark.alone  # shares
def test_a_tenant_made_anew_pays_for_those_before(machine):
    """Root's tenants of other names have other debts. So tenants with a new name each time show what the attack gains."""
    victim = machine.start("--name", "victim", "--cores", 80, "--cores-limit", 100, "--",
                           *machine.load("--seconds", 4 * WINDOW_S, "--blocks", 264))
    machine.wait_for_tenant("victim", lambda tenant: tenant["devices"][0]["got_1s_pct"] > 90)
    pid = machine.tenants()["victim"]["processes"][0]["pid"]
    unpaid = share_of_victim(machine, pid, "other{}".format)
    paid = share_of_victim(machine, pid, lambda _: "thief")
    print(f"the victim got {unpaid:.1f} % beside tenants without debt, {paid:.1f} % beside one owner's")
    assert paid > 1.15 * unpaid
    victim.terminate()
