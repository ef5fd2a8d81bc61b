"""The commands of allot that show and change tenants: ps, tasks, set, pause and resume."""

import json
import subprocess
import time

from machines import BUILD, GIB, wait_until
from cli_checks import assert_one_error


def test_ps_hints_at_a_simulated_gpu(machine, tmp_path):
    """The command in the hint also works for a description file."""
    spec = tmp_path / "cards.conf"
    spec.write_text("[gpu]\n")
    machine.sim = ["--sim", spec]
    machine.start("--name", "alone", "--", "sleep", "60")
    run_dir = wait_until(lambda: next(machine.base.glob("sim-cards-*/allotd.sock"), None), what="its daemon").parent
    hint = wait_until(lambda: machine.allot("ps").stderr, what="the hint")
    assert hint == f"allot: ps: a simulated GPU is in use; for its tenants: allot ps --run-dir {run_dir}\n"
    wait_until(lambda: "alone" in machine.allot("ps", "--run-dir", run_dir).stdout, what="its tenant")


def test_ps_into_a_pipe_is_not_truncated(machine):
    name = "job-123456-" + "x" * 52
    tenant = machine.start("--name", name, "--cores", "12.5", "--", "sleep", "60")
    machine.wait_for_tenant(name)
    done = machine.allot("ps", *machine.sim)
    assert name in done.stdout and "WAITED" in done.stdout
    tenant.terminate()


def test_tasks_of_a_private_daemon(machine):
    """A private daemon watches only its own tenants, whatever watch_tasks is."""
    tenant = machine.start("--name", "a", "--", "sleep", "60")
    machine.wait_for_tenant("a")
    done = machine.allot("tasks", *machine.sim)
    assert done.returncode == 0 and "watch_tasks" not in done.stderr
    assert "as a system service" in done.stderr
    tenant.terminate()


def test_ps_without_tenants(machine):
    result = machine.allot("ps", *machine.sim)
    assert (result.returncode, result.stdout, result.stderr) == (0, "no tenants\n", "")
    assert machine.ps() == {"version": 1, "devices": [], "tenants": []}
    assert not machine.servers()


NUMBER = (int, float)
DEVICE_FIELDS = {"index": int, "uuid": str, "name": str, "memory_bytes": int,
                 "memory_used_bytes": int, "busy_pct": NUMBER}
TENANT_FIELDS = {"name": str, "id": str, "state": str, "devices": list}
SHARE_FIELDS = {"index": int, "memory_quota_bytes": int, "memory_used_bytes": int,
                "cores_pct": NUMBER, "cores_limit_pct": NUMBER, "got_1s_pct": NUMBER,
                "got_60s_pct": NUMBER, "waited_s": NUMBER, "denied": int}


def check_fields(entry, fields):
    assert set(entry) >= set(fields)
    for name, kind in fields.items():
        assert isinstance(entry[name], kind) and not isinstance(entry[name], bool), name


def test_ps_json(machine2):
    machine2.start("--name", "a", "--gpu", "all", "--memory", "2GiB", "--cores", "30",
                   "--cores-limit", "60", "--", "sleep", "30")
    machine2.wait_for_tenant("a")
    listing = machine2.ps()
    assert set(listing) == {"version", "devices", "tenants"} and listing["version"] == 1
    assert [device["index"] for device in listing["devices"]] == [0, 1]
    for device in listing["devices"]:
        check_fields(device, DEVICE_FIELDS)
    tenant, = listing["tenants"]
    check_fields(tenant, TENANT_FIELDS)
    for device in tenant["devices"]:
        check_fields(device, SHARE_FIELDS)
        assert device["memory_quota_bytes"] == 2 * GIB
        assert (device["cores_pct"], device["cores_limit_pct"]) == (30, 60)


def test_ps_table_and_watch(machine):
    machine.start("--name", "a", "--memory", "2GiB", "--cores", "30", "--", "sleep", "30")
    machine.wait_for_tenant("a")
    table = machine.allot("ps", *machine.sim).stdout
    assert all(len(line) <= 80 for line in table.splitlines()), table
    row = next(line.split() for line in table.splitlines() if line.startswith("a "))
    assert row[1] == "0" and "2.0" in row and "30" in row
    for options, ends in ((["--watch", "0.1"], "\n\n"), (["--watch=0.1", "--json"], "\n")):
        watch = subprocess.Popen([BUILD / "allot", "ps", *machine.sim, *options], text=True,
                                 stdout=subprocess.PIPE, env=machine.environment)
        time.sleep(0.6)
        watch.terminate()
        frames = watch.communicate()[0].split(ends)
        assert len(frames) >= 4
        assert "\033" not in frames[0]
        if "--json" in options:
            assert json.loads(frames[0])["version"] == 1


def test_default_memory_is_all_unpromised_memory(machine):
    machine.start("--name", "a", "--memory", "100GiB", "--", "sleep", "30")
    machine.wait_for_tenant("a")
    machine.start("--name", "b", "--", "sleep", "30")
    tenant = machine.wait_for_tenant("b")
    gpu_bytes = machine.ps()["devices"][0]["memory_bytes"]
    assert tenant["devices"][0]["memory_quota_bytes"] == gpu_bytes - 100 * GIB


def test_set_live(machine):
    machine.start("--name", "a", "--memory", "2GiB", "--cores", "30", "--", "sleep", "30")
    machine.wait_for_tenant("a")
    result = machine.allot("set", "a", "--memory", "3GiB", "--cores", "40", "--cores-limit", "80",
                           *machine.sim)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "a: GPU 0: memory 3.0 GiB, cores 40 %, limit 80 %\n"
    device = machine.tenants()["a"]["devices"][0]
    assert device["memory_quota_bytes"] == 3 * GIB
    assert (device["cores_pct"], device["cores_limit_pct"]) == (40, 80)


def test_set_on_full(machine):
    """With wait the quota is not promised, so another tenant may have it. With fail it is promised again, if it is free."""
    machine.start("--name", "a", "--memory", "100GiB", "--", "sleep", "30")
    machine.wait_for_tenant("a")
    result = machine.allot("set", "a", "--on-full", "wait", *machine.sim)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "a: on-full wait\na: GPU 0: memory 100.0 GiB, limit 100 %\n"
    assert machine.tenants()["a"]["on_full"] == "wait"
    machine.start("--name", "b", "--memory", "100GiB", "--", "sleep", "30")
    machine.wait_for_tenant("b")
    assert_one_error(machine.allot("set", "a", "--on-full", "fail", *machine.sim), 1, "does not fit")
    result = machine.allot("set", "a", "--on-full", "fail", "--memory", "20GiB", *machine.sim)
    assert result.returncode == 0, result.stderr
    assert machine.tenants()["a"]["on_full"] == "fail"
    assert machine.tenants()["a"]["devices"][0]["memory_quota_bytes"] == 20 * GIB
    assert_one_error(machine.allot("set", "a", "--on-full", "swap", *machine.sim), 2, "fail or wait")
    without_quota = machine.start("--name", "c", "--", "sleep", "30")
    machine.wait_for_tenant("c")
    assert_one_error(machine.allot("set", "c", "--on-full", "wait", *machine.sim), 1, "memory_bytes (--memory): missing")
    without_quota.kill()


def test_set_refusals(machine2):
    machine2.start("--name", "a", "--gpu", "all", "--memory", "2GiB", "--cores", "30", "--",
                   "sleep", "30")
    machine2.wait_for_tenant("a")
    for arguments, status, parts in (
            (["a"], 2, ["nothing to set"]),
            ([], 2, ["name"]),
            (["a", "b", "--memory", "1GiB"], 2, ["name"]),
            (["a", "--memory", "4XB"], 2, ["'4XB'"]),
            (["a", "--memory", "1GiB"], 1, []),  # two GPUs, and neither is named
            (["a", "--gpu", "7", "--memory", "1GiB"], 1, ["no such GPU"]),
            (["a", "--gpu", "0", "--memory", "2TiB"], 1, []),
            (["nobody", "--gpu", "0", "--memory", "1GiB"], 1, ["nobody"])):
        assert_one_error(machine2.allot("set", *arguments, *machine2.sim), status, "allot: set: ", *parts)
    assert machine2.allot("set", "a", "--gpu", "1", "--memory", "1GiB",
                          *machine2.sim).returncode == 0
    quotas = [device["memory_quota_bytes"] for device in machine2.tenants()["a"]["devices"]]
    assert quotas == [2 * GIB, 1 * GIB]


def test_set_without_daemon(machine):
    assert_one_error(machine.allot("set", "a", "--memory", "1GiB", *machine.sim), 1, "no daemon runs")
    assert not machine.servers()


def test_pause_and_resume(machine):
    machine.start("--name", "a", "--memory", "2GiB", "--", "sleep", "30")
    running = machine.wait_for_tenant("a")["state"]
    assert machine.allot("pause", "a", *machine.sim).returncode == 0
    assert machine.tenants()["a"]["state"] == "paused"
    assert machine.allot("resume", "a", *machine.sim).returncode == 0
    assert machine.tenants()["a"]["state"] == running
    assert_one_error(machine.allot("pause", "nobody", *machine.sim), 1, "allot: pause: ", "nobody")


def test_paused_tenant_starts_no_work(machine):
    process = machine.start("--name", "a", "--memory", "2GiB", "--",
                            *machine.load("--seconds", "6", "--report-every", "0.5"))
    machine.wait_for_tenant("a", lambda tenant: tenant["devices"][0]["got_1s_pct"] > 50)
    assert machine.allot("pause", "a", *machine.sim).returncode == 0
    time.sleep(1.5)
    assert machine.tenants()["a"]["devices"][0]["got_1s_pct"] < 5
    assert machine.allot("resume", "a", *machine.sim).returncode == 0
    machine.wait_for_tenant("a", lambda tenant: tenant["devices"][0]["got_1s_pct"] > 50)
    assert process.wait(timeout=30) == 0
