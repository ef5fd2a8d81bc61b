"""GPUs that become faulty while the daemon runs: a faulty GPU gets no new tenants, its old tenants continue, and it is used
again when the fault is over."""

import json
import subprocess

import pytest

from machines import BUILD, kill_servers, make_machine, wait_until
from scrape import address_in, scrape
from servers import start, start_servers


@pytest.fixture
def two(tmp_path_factory):
    machine = make_machine(tmp_path_factory, "h200x2")
    yield machine
    machine.clean()


def start_daemon_with(machine, tmp_path, **settings):
    """Starts a daemon with two GPUs and these settings. Returns the messages of its start."""
    lines = "".join(f"{key} = {value}\n" for key, value in settings.items())
    return start_servers(machine, tmp_path, lines, card="[gpu]\n")


def inject_fault(machine, *arguments):
    subprocess.run([BUILD / "allot-sim", "--ctl", "--socket", machine.run_dir / "sim.sock", *arguments],
                   check=True, capture_output=True, timeout=10)


def device(machine, index=0):
    return machine.ps()["devices"][index]


def wait_health(machine, wanted, index=0):
    wait_until(lambda: device(machine, index)["health"] == wanted, what=f"the GPU to be {wanted}")
    return device(machine, index)


def run_tenant(machine, *options):
    return machine.run(*options, "--memory", "1GiB", "--", "true")


def test_an_xid_makes_the_gpu_unhealthy(two, tmp_path):
    messages = start_daemon_with(two, tmp_path, metrics_listen="127.0.0.1:0")
    assert device(two)["health"] == "healthy" and device(two)["health_since_s"] is None
    held = two.start("--gpu", "0", "--name", "held", "--memory", "1GiB", "--",
                     *two.load("--seconds", 60))
    two.wait_for_tenant("held", lambda t: t["state"] == "running")
    inject_fault(two, "xid", "0", "95")
    state = wait_health(two, "unhealthy")
    assert state["health_reason"] == "Xid 95: uncontained memory error"
    assert state["health_since_s"] > 1e9
    # Its tenants continue. New ones get the other GPU, and are refused if they name this one.
    before = two.tenants()["held"]["devices"][0]["used_s"]
    two.wait_for_tenant("held", lambda t: t["devices"][0]["used_s"] > before)
    assert held.poll() is None
    assert run_tenant(two).returncode == 0
    refused = run_tenant(two, "--gpu", "0")
    assert refused.returncode == 125 and "Xid 95: uncontained memory error" in refused.stderr
    assert "unhealthy: Xid 95" in two.allot("ps", *two.sim).stdout
    page = scrape(address_in(messages))
    assert page.value("allot_device_healthy", device="0") == 0
    assert page.value("allot_device_healthy", device="1") == 1
    assert page.value("allot_device_faults_total", device="0", kind="xid") == 1
    # allotd cannot see that the GPU was repaired: an administrator must uncordon it.
    done = two.allot("uncordon", state["uuid"], *two.sim)
    assert done.returncode == 0, done.stderr
    assert device(two)["health"] == "healthy"
    assert run_tenant(two, "--gpu", "0").returncode == 0


def test_xids_of_program_errors_are_ignored(two, tmp_path):
    start_daemon_with(two, tmp_path, health_ignore_xids="74,62")
    for number in ("13", "31", "43", "74", "62", "94"):
        inject_fault(two, "xid", "0", number)
    inject_fault(two, "xid", "1", "999")    # an unknown Xid may be any fault
    state = wait_health(two, "unhealthy", 1)
    assert state["health_reason"].startswith("Xid 999")
    assert device(two)["health"] == "healthy"


def test_a_gpu_recovers_after_a_time_without_memory_errors(two, tmp_path):
    start_daemon_with(two, tmp_path, health_recover="2s")
    inject_fault(two, "ecc", "1")
    state = wait_health(two, "unhealthy", 1)
    assert state["health_reason"] == "double-bit ECC error"
    wait_health(two, "healthy", 1)
    assert "is healthy again" in (two.run_dir / "allotd.log").read_text()


def test_a_lost_gpu_that_returns(two, tmp_path):
    start_daemon_with(two, tmp_path)
    inject_fault(two, "lose", "0")
    state = wait_health(two, "unhealthy")
    assert state["health_reason"] == "the driver reports that the GPU is lost"
    assert run_tenant(two).returncode == 0     # on the other GPU
    inject_fault(two, "heal", "0")
    wait_health(two, "healthy")
    assert run_tenant(two, "--gpu", "0").returncode == 0


def test_no_gpu_is_healthy(two, tmp_path):
    start_daemon_with(two, tmp_path)
    for index in ("0", "1"):
        inject_fault(two, "xid", index, "119")
    wait_health(two, "unhealthy", 1)
    wait_health(two, "unhealthy", 0)
    refused = run_tenant(two)
    assert refused.returncode == 125 and "the daemon has only 0 for new tenants" in refused.stderr


def test_health_off_ignores_faults(two, tmp_path):
    start_daemon_with(two, tmp_path, health="off")
    inject_fault(two, "xid", "0", "95")
    inject_fault(two, "lose", "1")
    subprocess.run(["sleep", "2"], check=True)
    assert [d["health"] for d in two.ps()["devices"]] == ["healthy"] * 2


def test_cordon(two, tmp_path):
    start_daemon_with(two, tmp_path)
    held = two.start("--gpu", "1", "--name", "held", "--memory", "1GiB", "--", "sleep", "60")
    two.wait_for_tenant("held")
    uuid = device(two, 1)["uuid"]
    assert two.allot("cordon", uuid, *two.sim).returncode == 0
    assert device(two, 1)["cordoned"] and not device(two, 0)["cordoned"]
    assert device(two, 1)["health"] == "healthy" and held.poll() is None
    refused = run_tenant(two, "--gpu", "1")
    assert refused.returncode == 125 and "is cordoned" in refused.stderr
    assert run_tenant(two, "--gpu", "0").returncode == 0
    assert ", cordoned" in two.allot("ps", *two.sim).stdout
    # The next daemon keeps it cordoned.
    assert (two.run_dir / "cordoned").read_text() == uuid + "\n"
    daemon, = [pid for pid, line in two.servers().items() if "allotd" in line]
    kill_servers(daemon)
    wait_until(lambda: two.servers().keys() - {daemon} and two.tenants().get("held"),
               what="the next daemon")
    assert device(two, 1)["cordoned"]
    assert two.allot("uncordon", "1", *two.sim).returncode == 0
    assert not device(two, 1)["cordoned"] and not (two.run_dir / "cordoned").exists()
    assert run_tenant(two, "--gpu", "1").returncode == 0


def test_cordon_by_setting(two, tmp_path):
    uuid = json.loads(subprocess.run(
        [BUILD / "allot", "run", *two.sim, "--", "sh", "-c", "echo \"[\\\"$CUDA_VISIBLE_DEVICES\\\"]\""],
        env=two.environment, capture_output=True, text=True, check=True, timeout=30).stdout)[0]
    two.wait_until_gone()
    (tmp_path / "own").write_text(f"cordon = {uuid}\nlinger = 30s\n")
    socket = two.run_dir / "sim.sock"
    start("allot-sim", "--socket", socket, "--spec", "h200x2")
    command = ["--private", "--run-dir", two.run_dir, "--sim-socket", socket, "--nvml",
               BUILD / "sim" / "libnvidia-ml.so.1", "--config", tmp_path / "own"]
    start("allotd", *command)
    cordoned, = [d["index"] for d in two.ps()["devices"] if d["cordoned"]]
    assert two.ps()["devices"][cordoned]["uuid"] == uuid
    refused = two.allot("uncordon", uuid, *two.sim)
    assert refused.returncode == 1 and "cordoned by allotd's setting 'cordon'" in refused.stderr
    unknown = two.allot("cordon", "7", *two.sim)
    assert unknown.returncode == 1 and "'7': no such GPU" in unknown.stderr


@pytest.mark.parametrize("line, message", [("health_ignore_xids = 43,x", "Xid numbers"),
                                           ("health_ignore_xids = 0", "Xid numbers"),
                                           ("health = perhaps", "on or off")])
def test_wrong_settings_are_named(tmp_path, line, message):
    (tmp_path / "settings").write_text(line + "\n")
    done = subprocess.run([BUILD / "allotd", "--check-config", tmp_path / "settings"],
                          capture_output=True, text=True, timeout=10, check=False)
    assert done.returncode == 1 and message in done.stderr
