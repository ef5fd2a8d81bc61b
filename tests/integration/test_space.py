"""Tenants that run on a GPU at the same time, as MPS clients: their groups and the groups' MPS control daemons. Also the
effects on tenants when a control daemon, a server or a client ends."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest

from machines import BUILD, wait_until

SPACE = ["--sharing", "space", "--memory", "4GiB"]


def control_of(machine, group="0-1"):
    """The pid of the group's control daemon, or None."""
    try:
        return json.loads((machine.run_dir / "mps" / f"{group}.json").read_text())["pid"] or None
    except (OSError, ValueError):
        return None


def children_of(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(child) for child in text.split()]


def is_gone(pid):
    """Whether it has ended; a zombie, which the test can't reap, counts as ended."""
    try:
        return ") Z " in pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True


def ask(machine, command, group="0-1"):
    """The output of NVIDIA's tool for this command, to the group's control daemon."""
    pipe = machine.run_dir / "mps" / group / "pipe"
    return subprocess.run([BUILD / "sim/nvidia-cuda-mps-control"], input=command + "\n", text=True, timeout=20,
                          capture_output=True, check=True,
                          env={**os.environ, "CUDA_MPS_PIPE_DIRECTORY": str(pipe)}).stdout


def start(machine, name, *terms, seconds=60):
    """Starts a load in a tenant of that name; returns (process, pid of the load) once the load is an MPS client."""
    process = machine.start("--name", name, *SPACE, *terms, "--", *machine.load("--seconds", seconds))
    found = machine.wait_for_tenant(name, lambda t: t["processes"])
    return process, found["processes"][0]["pid"]


def space_of(machine, name):
    return machine.tenants()[name]["space"]


def wait_for_fault(machine, name):
    """Waits until the tenant has a fault of MPS; returns its text."""
    found = machine.wait_for_tenant(name, lambda t: t["space"]["fault"])
    return found["space"]["fault"]


def log_of(machine):
    return (machine.run_dir / "allotd.log").read_text()


def test_a_group_from_its_first_to_its_last_tenant(machine):
    one, pid1 = start(machine, "one", "--cores-limit", "40")
    two, pid2 = start(machine, "two", "--priority", "-1")
    control = control_of(machine)
    environment = pathlib.Path(f"/proc/{control}/environ").read_bytes().split(b"\0")
    assert f"CUDA_VISIBLE_DEVICES={machine.ps()['devices'][0]['uuid']}".encode() in environment
    found = json.loads(machine.allot("doctor", "--json", *machine.sim).stdout)["findings"]
    ours = {f"(pid {pid})" for pid in (control, *children_of(control))}
    assert not [finding for finding in found if any(pid in finding["what"] for pid in ours)]
    wait_until(lambda: set(ask(machine, f"get_client_list {children_of(control)[0]}").split()) ==
               {str(pid1), str(pid2)}, what="both as clients of one server")
    client_environment = pathlib.Path(f"/proc/{pid1}/environ").read_bytes().split(b"\0")
    assert b"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=40" in client_environment     # 52 of 132 SMs
    assert b"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=4096M" in client_environment
    assert b"CUDA_MPS_CLIENT_PRIORITY=1" in pathlib.Path(f"/proc/{pid2}/environ").read_bytes().split(b"\0")
    listed = machine.tenants()
    assert listed["one"]["sharing"] == "space"
    assert listed["one"]["space"] == {"group": f"user/{os.getuid()}", "number": 1, "state": "ready", "tenants": 2,
                                      "fault": None}
    for directory in ("pipe", "log"):
        assert (machine.run_dir / "mps/0-1" / directory).stat().st_mode & 0o777 == 0o700
    # Another group on the same GPU has its own control daemon.
    other, _ = start(machine, "other", "--group", "apart")
    assert space_of(machine, "other")["number"] == 2 and control_of(machine, "0-2") != control
    other.terminate()
    wait_until(lambda: not (machine.run_dir / "mps/0-2").exists(), what="the end of the other group")
    assert not is_gone(control)
    for process in (one, two):
        process.terminate()
    wait_until(lambda: is_gone(control), what="the end of the group with its last tenant")
    machine.wait_until_gone()
    assert not list((machine.run_dir / "mps").glob("*"))


@pytest.mark.parametrize("victim", ["server", "control"])
def test_a_killed_server_or_control_daemon_is_replaced(machine, victim):
    one, pid = start(machine, "one")
    # This tenant has no client. It outlives the kill, and its fault is reported.
    two = machine.start("--name", "two", *SPACE, "--", "sleep", "60")
    machine.wait_for_tenant("two")
    control = control_of(machine)
    server = wait_until(lambda: children_of(control), what="a server")[0]
    began = time.monotonic()
    os.kill(server if victim == "server" else control, signal.SIGKILL)
    fault = wait_for_fault(machine, "two")
    assert time.monotonic() - began < 10, "not found within 10 s"
    assert f"MPS {'server' if victim == 'server' else 'control daemon'} (pid " in fault
    assert f"tenant 'two' ({machine.tenants()['two']['id']}): {fault}" in log_of(machine)
    # The client has lost its GPU.
    assert one.wait(timeout=20) != 0
    # A new tenant starts without help, and without a fault.
    again = machine.run("--name", "again", *SPACE, "--", *machine.load("--seconds", 0.2))
    assert again.returncode == 0, again.stderr
    assert space_of(machine, "two")["state"] == "ready"
    two.terminate()
    machine.wait_until_gone()
    assert is_gone(control) and is_gone(server)


def test_a_start_right_after_the_server_is_killed(machine):
    """The control daemon may refuse clients then, for a while or for ever, so the group gets a new one."""
    one = machine.start("--name", "one", *SPACE, "--", "sleep", "60")
    machine.wait_for_tenant("one", lambda t: t["space"]["state"] == "ready")
    for _ in range(2):
        control = control_of(machine)
        server = wait_until(lambda: children_of(control), what="a server")[0]
        ask(machine, "sim_refuse 1000")
        os.kill(server, signal.SIGKILL)
        again = machine.run("--name", "again", *SPACE, "--", *machine.load("--seconds", 0.2))
        assert again.returncode == 0, again.stderr
        assert control_of(machine) != control and is_gone(control) and is_gone(server)
        assert f"MPS server (pid {server}) ended" in space_of(machine, "one")["fault"]
    one.terminate()
    machine.wait_until_gone()


def test_a_refused_client_tries_again_once(machine):
    """The control daemon accepts a client, but the server ends before the client has connected to it."""
    one = machine.start("--name", "one", *SPACE, "--", "sleep", "60")
    machine.wait_for_tenant("one", lambda t: t["space"]["state"] == "ready")
    server = children_of(control_of(machine))[0]
    ask(machine, "sim_refuse 1")
    two, pid = start(machine, "two")
    wait_until(lambda: str(pid) in ask(machine, f"get_client_list {server}").split(), what="the client that tried again")
    two.terminate()
    # A permanent refusal is reported with the driver's error.
    ask(machine, "sim_refuse 1000")
    refused = machine.run("--name", "three", *SPACE, "--", *machine.load("--seconds", 0.2))
    assert refused.returncode not in (0, 125) and "CUDA_ERROR_MPS_CONNECTION_FAILED" in refused.stderr
    one.terminate()


def start_outliving_load(machine, name, *terms):
    """Starts a load whose tenant outlives it; returns (process, pid of the load)."""
    load = " ".join(str(argument) for argument in machine.load("--seconds", 60))
    process = machine.start("--name", name, *SPACE, *terms, "--", "sh", "-c", f"{load}; sleep 60")
    found = machine.wait_for_tenant(name, lambda t: t["processes"])
    return process, found["processes"][0]["pid"]


@pytest.mark.parametrize("scope", ["", " all", " stays"])
def test_a_fault_of_a_client(machine, scope):
    """Newer drivers discard the work of that client only. Older ones end the server, at once or when its last client has ended;
    until then the server accepts no client."""
    one, pid1 = start_outliving_load(machine, "one")
    two, pid2 = start_outliving_load(machine, "two")
    apart, pid3 = start_outliving_load(machine, "apart", "--group", "apart")
    began = time.monotonic()
    ask(machine, f"sim_fault {pid1}{scope}")
    fault = wait_for_fault(machine, "one")
    assert time.monotonic() - began < 10, "not found within 10 s"
    if scope:
        assert fault.startswith("its MPS server") or "fatal exception" in fault
        wait_for_fault(machine, "two")
        wait_until(lambda: is_gone(pid2), what="the end of the other client")
    else:
        assert fault == f"a fault of process {pid1}: the MPS server discarded the GPU work of that process"
        assert space_of(machine, "two")["fault"] is None and not is_gone(pid2)
    wait_until(lambda: is_gone(pid1), what="the end of the client")
    assert f"tenant 'one' ({machine.tenants()['one']['id']}): " in log_of(machine)
    # Other groups are unaffected, and a new tenant starts without help.
    assert space_of(machine, "apart")["fault"] is None and not is_gone(pid3)
    again = machine.run("--name", "again", *SPACE, "--", *machine.load("--seconds", 0.2))
    assert again.returncode == 0, again.stderr
    for process in (one, two, apart):
        process.terminate()


def test_a_client_killed_within_a_kernel_harms_no_other(machine):
    one, pid1 = start_outliving_load(machine, "one")
    two, pid2 = start_outliving_load(machine, "two")
    os.kill(pid1, signal.SIGKILL)
    machine.wait_for_tenant("one", lambda t: not t["processes"])
    again = machine.run("--name", "again", *SPACE, "--", *machine.load("--seconds", 0.2))
    assert again.returncode == 0, again.stderr
    found = machine.tenants()
    assert found["two"]["space"]["fault"] is None and found["two"]["space"]["state"] == "ready"
    assert not is_gone(pid2)
    for process in (one, two):
        process.terminate()


def test_stopped_servers_are_reported_and_replaced(machine):
    one, _ = start(machine, "one")
    control = control_of(machine)
    server = wait_until(lambda: children_of(control), what="a server")[0]
    os.kill(server, signal.SIGSTOP)
    assert f"MPS server (pid {server}) is stopped" in wait_for_fault(machine, "one")
    assert space_of(machine, "one")["state"] == "hung"
    os.kill(server, signal.SIGCONT)
    machine.wait_for_tenant("one", lambda t: t["space"]["state"] == "ready")
    os.kill(control, signal.SIGSTOP)
    machine.wait_for_tenant("one", lambda t: t["space"]["state"] == "hung")
    # A new tenant's start ends what hangs.
    again = machine.run("--name", "again", *SPACE, "--", *machine.load("--seconds", 0.2))
    assert again.returncode == 0, again.stderr
    assert is_gone(control) and is_gone(server)
    assert one.wait(timeout=20) != 0


def test_a_daemon_that_ends_while_a_tenant_waits_for_mps(machine):
    """The next daemon continues the start, and the command begins."""
    start(machine, "one")
    control = control_of(machine)
    os.kill(control, signal.SIGSTOP)
    machine.wait_for_tenant("one", lambda t: t["space"]["state"] == "hung")
    # The start of a new tenant replaces a control daemon that hangs, which takes a moment.
    two = machine.start("--name", "two", *SPACE, "--", *machine.load("--seconds", 0.2))
    machine.wait_for_tenant("two")
    machine.kill_daemon()
    assert two.wait(timeout=60) == 0, two.stderr.read()


def test_the_next_daemon_adopts_groups(machine):
    one, pid = start(machine, "one")
    control = control_of(machine)
    machine.kill_daemon()
    machine.wait_for_tenant("one", lambda t: t["space"]["state"] == "ready" and not t["adopting"])
    assert control_of(machine) == control and not is_gone(pid)
    two = machine.start("--name", "two", *SPACE, "--", "sleep", "60")
    machine.wait_for_tenant("two", lambda t: t["space"]["tenants"] == 2)
    # A control daemon that was killed in the meantime is started again.
    machine.kill_daemon(control)
    wait_until(lambda: control_of(machine) not in (None, control), what="another control daemon")
    machine.wait_for_tenant("two", lambda t: t["space"]["state"] == "ready")
    assert one.wait(timeout=20) != 0
    two.terminate()
    machine.wait_until_gone()
    assert is_gone(control) and not list((machine.run_dir / "mps").glob("*"))


REFUSED = [
    (["--sharing", "time", "--group", "x"], "only with --sharing space"),
    (["--group", "x"], "possible only with sharing 'space'"),
    (["--sharing", "space", "--gpu", "0,1"], "the tenant has 2 GPUs, and a client of MPS can use only one: ask for one GPU"),
    (["--sharing", "space", "--memory", "1GiB", "--on-full", "swap"], "can't be moved off the GPU"),
    (["--sharing", "space", "--cores-limit", "0.5%"], "0.5 % of 132 SMs is less than one SM: must be 0.76 % or more"),
]


def test_impossible_options_are_refused(machine2):
    for terms, message in REFUSED:
        refused = machine2.run(*terms, "--", "true")
        assert refused.returncode == 125 and message in refused.stderr, (terms, refused.stderr)


def test_a_limit_is_a_percentage_of_the_sms(machine):
    show = ["--", "sh", "-c", "echo $CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"]
    done = machine.run("--sharing", "space", "--cores-limit", "40", *show)
    assert done.stdout == "40\n", done.stderr     # 52 of 132 SMs: the nearest pair
    done = machine.run("--sharing", "space", "--cores", "40", "--cores-limit", "100", *show)
    assert done.stdout == "100\n", done.stderr


def test_containers_of_a_group_share_its_pipe(machine, tmp_path):
    def create(name, *terms):
        done = machine.allot("cdi", "create", name, "--memory", "1GiB", *terms, "--output", tmp_path, *machine.sim)
        assert done.returncode == 0, done.stderr
        edits = json.loads((tmp_path / f"allot-{name}.json").read_text())["devices"][0]["containerEdits"]
        return dict(line.split("=", 1) for line in edits["env"]), {m["containerPath"]: m for m in edits["mounts"]}

    environment, mounts = create("web", "--sharing", "space", "--cores-limit", "25")
    assert environment["CUDA_MPS_PIPE_DIRECTORY"] == "/run/allot/mps"
    assert environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "25"     # 32 of 132 SMs
    assert mounts["/run/allot/mps"]["hostPath"] == str(machine.run_dir / "mps/0-1/pipe")
    assert "ro" not in mounts["/run/allot/mps"]["options"]
    # A container gets the pipe of its own group; one that takes turns gets none.
    assert create("other", "--sharing", "space", "--group", "x")[1]["/run/allot/mps"]["hostPath"].endswith("/0-2/pipe")
    environment, mounts = create("turns")
    assert "/run/allot/mps" not in mounts and "CUDA_MPS_PIPE_DIRECTORY" not in environment
    machine.wait_for_tenant("web", lambda t: t["space"]["state"] == "ready")
    # A removal takes effect even though no process runs that a daemon could adopt.
    machine.allot("cdi", "remove", "other", *machine.sim)
    wait_until(lambda: not (machine.run_dir / "mps/0-2").exists(), what="the end of the other group")
    for name in ("web", "turns"):
        assert machine.allot("cdi", "remove", name, "--output", tmp_path, *machine.sim).returncode == 0


def test_a_full_server_refuses_tenants(machine, tmp_path):
    settings = tmp_path / "allotd.conf"
    settings.write_text("mps_clients = 1\nsharing = space\n")
    machine.environment["ALLOT_CONFIG"] = str(settings)
    one, _ = start(machine, "one")
    refused = machine.run("--memory", "1GiB", "--", "true")
    assert refused.returncode == 125 and "has 1 processes on GPU 0, the most" in refused.stderr
    apart = machine.run("--memory", "1GiB", "--group", "apart", "--", *machine.load("--seconds", 0.2))
    assert apart.returncode == 0, apart.stderr
    one.terminate()


def copy_without_mps(directory):
    """Copies the build without the MPS control daemon; returns the copy."""
    (directory / "sim").mkdir(parents=True)
    for name in ("allot", "allotd", "allot-sim", "liballot.so", "sim/libcuda.so.1", "sim/libnvidia-ml.so.1"):
        shutil.copy(BUILD / name, directory / name)
    return directory


def write_program(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


@pytest.mark.parametrize("victim", ["server", "control"])
def test_a_control_daemon_that_fails_at_first_is_retried(machine, tmp_path, victim):
    """For example because the driver has not released everything of the killed one. No new tenant is needed for the retry."""
    copy = copy_without_mps(tmp_path / "b")
    failures = tmp_path / "failures"
    write_program(copy / "sim/nvidia-cuda-mps-control",
                  f'[ "$1" = -f ] && echo >>{failures}.begun && [ -s {failures} ] && '
                  f'{{ sed -i 1d {failures}; echo Failed to begin; exit 1; }}\n'
                  f'exec {BUILD}/sim/nvidia-cuda-mps-control "$@"\n')
    one = subprocess.Popen([copy / "allot", "run", *machine.sim, "--name", "one", *SPACE, "--", "sleep", "60"],
                           env=machine.environment)
    machine.started.append(one)
    machine.wait_for_tenant("one", lambda t: t["space"]["state"] == "ready")
    control = control_of(machine)
    failures.write_text("1\n2\n")
    os.kill(children_of(control)[0] if victim == "server" else control, signal.SIGKILL)
    # One start, two failed ones, and then a successful one.
    wait_until(lambda: len(pathlib.Path(f"{failures}.begun").read_text()) >= 4, what="a start after the failed ones")
    machine.wait_for_tenant("one", lambda t: t["space"]["state"] == "ready" and control_of(machine) != control)
    assert "Failed" not in space_of(machine, "one")["fault"]
    one.terminate()
    machine.wait_until_gone()


def test_refusals_without_a_working_mps(machine, tmp_path):
    copy = copy_without_mps(tmp_path / "b")

    def run(*terms):
        return subprocess.run([copy / "allot", "run", *machine.sim, *terms], env=machine.environment, text=True,
                              capture_output=True, timeout=60, check=False)

    refused = run("--sharing", "space", "--", "true")
    assert refused.returncode == 125 and "nvidia-cuda-mps-control" in refused.stderr
    # The reason of a control daemon that can't even start is its own message.
    write_program(copy / "sim/nvidia-cuda-mps-control",
                  '[ "$1" = -f ] && { echo MPS is only supported on other cards; exit 1; }\nexit 1\n')
    refused = run("--sharing", "space", "--", "true")
    assert refused.returncode == 125 and "MPS is only supported on other cards" in refused.stderr
