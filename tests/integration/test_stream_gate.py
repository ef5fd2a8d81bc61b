"""Work that waits in its stream for its tenant's lease (library/launch/stream_gate.h), beside a tenant that always has work: what ends,
opens or keeps it. That nobody hangs is what most of these are about; how much is done is held to counters."""

import json
import os
import signal
import time

import pytest

from held import compile_c, link_with_driver
from machines import stop_process, wait_until
from servers import restart_daemon, start_servers

HALF = ["--memory", "4GiB", "--cores", 50, "--cores-limit", 100]
# How often each is done: at a different moment of a lease each time.
TIMES = 5


@pytest.fixture(autouse=True)
def always(tmp_path, monkeypatch):
    """Also where nobody has short steps, of which the arbiter would have to learn first."""
    tuning = tmp_path / "always"
    tuning.write_text("queue_always = on\n")
    monkeypatch.setenv("ALLOT_TUNING", str(tuning))


@pytest.fixture(scope="module")
def gated(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("gated") / "gated", "gated.c", *link_with_driver())


@pytest.fixture
def beside(machine):
    """A tenant that always has work."""
    process = machine.start("--name", "beside", *HALF, "--", *machine.load("--seconds", 300))
    machine.wait_for_tenant("beside", lambda t: t["state"] == "running")
    yield process
    tenant = machine.tenants()["beside"]
    assert tenant["violations"] == 0
    process.terminate()


def end(process):
    """What it prints when it is told to end."""
    process.terminate()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


def rests(machine, name):
    """It is charged for nothing any more: what it had in flight has ended."""
    def look():
        used = device_of(machine, name)["used_s"]
        time.sleep(0.3)
        return device_of(machine, name)["used_s"] == used
    wait_until(look, what=f"the rest of {name}")


def device_of(machine, name):
    (device,) = machine.tenants()[name]["devices"]
    return device


def check_leases_go_on(machine):
    """Neither has the GPU for itself, and nobody waits for a lease that does not end."""
    process = machine.start("--name", "after", *HALF, "--", *machine.load("--seconds", 30))
    machine.wait_for_tenant("after", lambda t: t["devices"][0]["leases"] > 10)
    device = device_of(machine, "beside")
    wait_until(lambda: device_of(machine, "beside")["leases"] > device["leases"] + 10, what="leases")
    process.terminate()
    process.wait(timeout=20)


@pytest.mark.alone  # how long launches take
def test_launches_return_while_another_has_the_lease(machine, tmp_path, gated):
    """Far fewer of them are held than without gates."""
    start_servers(machine, tmp_path, "", tuning="queue_always = on\n")
    figures = {}
    for queue in ("5ms", "0"):
        (tmp_path / "tuning").write_text(f"queue = {queue}\nqueue_always = on\n")
        restart_daemon(machine, tmp_path)
        beside = machine.start("--name", "beside", *HALF, "--", *machine.load("--seconds", 300))
        machine.wait_for_tenant("beside", lambda t: t["state"] == "running")
        process = machine.start("--name", "ahead", *HALF, "--", "sh", "-c", '"$@"; read -r line', "sh",
                                gated, "ahead", 5, stdin=-1)
        done = json.loads(process.stdout.readline())
        leases = device_of(machine, "ahead")["leases"]
        print(f"queue {queue}: {done}, {leases} leases")
        figures[queue] = done
        assert done["launches"] + 100 == done["written"]
        assert machine.tenants()["ahead"]["violations"] == 0
        process.communicate("\n", timeout=20)
        beside.terminate()
        beside.wait(timeout=20)
        assert leases > 50
    held, held_without = (figure["held"] / figure["launches"] for figure in figures.values())
    assert held < held_without / 2
    assert figures["5ms"]["launches"] > 0.9 * figures["0"]["launches"]


@pytest.mark.parametrize("way", ["exit", "_exit", "kill", "reset", "destroy", "stream", "fork", "exec", "free", "capture",
                                 "wait", "small"])
def test_ends(machine, gated, beside, way):
    """With work behind a gate."""
    for _ in range(TIMES):
        done = machine.run("--name", "subject", *HALF, "--", gated, way)
        assert done.returncode == (137 if way == "kill" else 0), done.stderr
    check_leases_go_on(machine)


def test_stopped_with_work_behind_a_gate(machine, gated, beside):
    """A process that stands still keeps the other from nothing, and goes on where it was."""
    process = machine.start("--name", "subject", *HALF, "--", gated, "ahead", 300)
    machine.wait_for_tenant("subject", lambda t: t["devices"][0]["leases"] > 20)
    pid = machine.tenants()["subject"]["processes"][0]["pid"]
    for _ in range(TIMES):
        stop_process(pid)
        device = device_of(machine, "beside")
        wait_until(lambda: device_of(machine, "beside")["used_s"] > device["used_s"] + 0.1, what="work of the other")
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.2)
    out = end(process)
    assert json.loads(out)["written"] > 100


def test_daemon_that_is_killed(machine, gated, beside):
    """Gates open while there is none, and the next one's leases are heeded."""
    process = machine.start("--name", "subject", *HALF, "--", gated, "ahead", 300)
    for _ in range(3):
        machine.wait_for_tenant("subject", lambda t: t["devices"][0]["leases"] > 20)
        machine.kill_daemon()
    machine.wait_for_tenant("subject", lambda t: t["devices"][0]["leases"] > 20)
    out = end(process)
    done = json.loads(out)
    assert done["launches"] + 100 == done["written"]
    check_leases_go_on(machine)


def test_daemon_that_is_stopped(machine, gated, beside):
    """Its end is not told; it beats no more."""
    process = machine.start("--name", "subject", *HALF, "--", gated, "ahead", 300)
    machine.wait_for_tenant("subject", lambda t: t["devices"][0]["leases"] > 20)
    (daemon,) = machine.daemons()
    for _ in range(3):
        os.kill(daemon, signal.SIGSTOP)
        time.sleep(1)
        os.kill(daemon, signal.SIGCONT)
        time.sleep(0.5)
    out = end(process)
    assert json.loads(out)["written"] > 100


@pytest.mark.parametrize("how", [[], ["--swap-out"]])
def test_pause_and_resume(machine, gated, beside, how):
    """What is behind a gate runs when the tenant is resumed, or before it leaves the GPU."""
    process = machine.start("--name", "subject", *HALF, "--", gated, "ahead", 300)
    machine.wait_for_tenant("subject", lambda t: t["devices"][0]["leases"] > 20)
    for _ in range(TIMES):
        done = machine.allot("pause", "subject", *how, *machine.sim)
        assert done.returncode == 0, done.stderr
        rests(machine, "subject")
        done = machine.allot("resume", "subject", *machine.sim)
        assert done.returncode == 0, done.stderr
        time.sleep(0.3)
    out = end(process)
    assert json.loads(out)["written"] > 100
    check_leases_go_on(machine)


@pytest.mark.alone  # how much each gets
def test_shares_stay(machine, tmp_path):
    """Of two that always have work, one at 60 and one at 30 %, with gates in streams and without."""
    start_servers(machine, tmp_path, "", tuning="queue_always = on\n")
    for queue in ("5ms", "0"):
        (tmp_path / "tuning").write_text(f"queue = {queue}\nqueue_always = on\n")
        restart_daemon(machine, tmp_path)
        begin = time.time() + 2
        tenants = [machine.start_load("--memory", "4GiB", "--cores", cores, "--cores-limit", cores,
                                      load=("--seconds", 5, "--start-at", begin)) for cores in (60, 30)]
        shares = [machine.end_load(tenant)[0] for tenant in tenants]
        print(f"queue {queue}: {shares}")
        assert all(share.is_sound() for share in shares)
        assert abs(shares[0].charged_pct - 60) < 3 and abs(shares[1].charged_pct - 30) < 3
