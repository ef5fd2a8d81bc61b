"""allot run: bad input, exit statuses, environment and signals of the command, and the servers, which end afterwards."""

import ctypes
import json
import os
import pathlib
import pwd
import signal
import subprocess
import time

import pytest

from machines import BUILD, GIB, kill_servers, make_machine, wait_until
from cli_checks import assert_one_error
from held import can_mount

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make this happen")


@pytest.fixture(scope="module")
def ending_machines():
    """Machines whose servers end by themselves, which takes seconds; test_no_server_is_left waits for all of them at once."""
    machines = []
    yield machines
    for machine in machines:
        machine.clean()


@pytest.fixture
def ending_machine(tmp_path_factory, ending_machines):
    """One simulated H200. test_no_server_is_left checks that its servers have ended."""
    ending_machines.append(make_machine(tmp_path_factory, "h200"))
    return ending_machines[-1]


# Options that are refused before a server starts.
BAD_OPTIONS = [
    (["--memory", "0"], 125, ["--memory", "'0'", "more than 0", "4GiB"]),
    (["--memory", "-1"], 125, ["--memory", "'-1'", "more than 0"]),
    (["--memory=-1"], 125, ["--memory", "'-1'"]),
    (["--memory", "4XB"], 125, ["--memory", "'4XB'", "unit unknown", "4096MiB"]),
    (["--memory", "4"], 125, ["--memory", "'4'", "unit missing"]),
    (["--memory", ""], 125, ["--memory", "is empty"]),
    (["--cores", "0"], 125, ["--cores", "'0'", "more than 0 and at most 100"]),
    (["--cores", "101"], 125, ["--cores", "'101'", "at most 100"]),
    (["--cores", "abc"], 125, ["--cores", "'abc'", "not a number"]),
    (["--cores", "40", "--cores-limit", "30"], 125, ["--cores-limit", "'30'", "--cores 40"]),
    (["--cores-limit", "0"], 125, ["--cores-limit", "'0'"]),
    (["--gpu", "x"], 125, ["--gpu", "'x'", "neither the index nor the UUID of a GPU"]),
    (["--gpu", "0,0"], 125, ["--gpu", "twice"]),
    (["--name", "a/b"], 125, ["--name", "'a/b'"]),
    (["--priority", "1000"], 125, ["--priority", "-100 to 100"]),
    (["--meory", "4GiB"], 125, ["--meory", "unknown option", "did you mean --memory?"]),
    (["-x"], 125, ["-x", "unknown option"]),
    (["--elastic", "maybe"], 125, ["--elastic", "'maybe'", "on or off"]),
    (["--on-full", "wait"], 125, ["--on-full", "'wait'", "needs --memory"]),
    (["--on-full", "swap"], 125, ["--on-full", "'swap'", "needs --memory"]),
    (["--policy", "fair"], 125, ["--policy", "'fair'", "lease, feedback or token"]),
    (["--sharing", "nonsense"], 125, ["--sharing", "must be time or space"]),
    (["--sim", "./no-such-file"], 125, ["--sim", "no-such-file"]),
]


@pytest.mark.parametrize("options, status, parts", BAD_OPTIONS,
                         ids=[" ".join(row[0]) for row in BAD_OPTIONS])
def test_bad_option(machine, options, status, parts):
    assert_one_error(machine.run(*options, "--", "true"), status, *parts)
    assert not machine.servers()
    assert not machine.base.exists()


def test_no_command(machine):
    assert_one_error(machine.run(), 125, "the command to run is missing")
    assert_one_error(machine.run("--memory"), 125, "--memory: a value is missing")


def test_command_not_found(machine):
    assert_one_error(machine.run("--", "no-such-command"), 127, "'no-such-command'", "not found")
    assert_one_error(machine.run("--", "/no/such/command"), 127, "not found")
    assert not machine.base.exists()


def test_command_is_not_executable(machine, tmp_path):
    data = tmp_path / "data"
    data.write_text("x")
    assert_one_error(machine.run("--", data), 126, "Permission denied")
    assert_one_error(machine.run("--", tmp_path), 126, "Is a directory")
    assert not machine.base.exists()


def test_interpreter_missing(ending_machine, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    assert_one_error(ending_machine.run("--", script), 127, str(script))


def test_more_memory_than_the_gpu_has(ending_machine):
    assert_one_error(ending_machine.run("--memory", "1TiB", "--", "true"), 125, "memory")


def test_unknown_gpu_lists_the_gpus(machine2):
    assert_one_error(machine2.run("--gpu", "5", "--", "true"), 125, "'5'", "no such GPU", "0 (", "1 (", "GPU-")
    assert_one_error(machine2.run("--gpu", "GPU-0000", "--", "true"), 125, "'GPU-0000'", "no such GPU")
    machine2.wait_until_gone()


def test_unknown_simulated_gpu(ending_machine):
    assert_one_error(ending_machine.allot("run", "--sim", "h2000", "--", "true"), 125, "--sim", "h2000")


def test_bad_description_file(ending_machine, tmp_path):
    spec = tmp_path / "cards.conf"
    spec.write_text("[gpu]\nmemory = lots\n")
    assert_one_error(ending_machine.allot("run", "--sim", spec, "--", "true"), 125, "--sim", "lots")


def test_set_without_sim_tells_of_a_simulated_gpu(machine):
    """For those who forget --sim after the first command; the option in the message works."""
    machine.sim = ["--sim", "h200"]
    machine.start("--name", "alone", "--", "sleep", "60")
    run_dir = wait_until(lambda: next(machine.base.glob("sim-*/allotd.sock"), None), what="its daemon").parent
    wait_until(lambda: "alone" in machine.allot("ps", "--run-dir", run_dir).stdout, what="its tenant")
    assert_one_error(machine.allot("set", "alone", "--cores", "20"), 1, "no daemon runs", f"add --run-dir {run_dir}")
    assert_one_error(machine.allot("cdi", "list"), 1, "no daemon runs", f"add --run-dir {run_dir}")
    done = machine.allot("set", "alone", "--cores", "20", "--run-dir", run_dir)
    assert done.returncode == 0 and "cores 20 %" in done.stdout, done.stderr


def test_no_gpu_says_how_to_get_one(machine):
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
        pytest.skip("this machine has NVIDIA's driver")
    except OSError:
        pass
    assert_one_error(machine.allot("run", "--", "true"), 125, "no GPU", "driver", "--sim h200")
    assert not machine.base.exists()


def test_memory_and_names_are_given_once(ending_machine):
    first = ending_machine.start("--name", "a", "--cores", "60", "--memory", "100GiB", "--", "sleep", "30")
    ending_machine.wait_for_tenant("a")
    assert_one_error(ending_machine.run("--memory", "100GiB", "--", "true"), 125)
    assert_one_error(ending_machine.run("--name", "a", "--", "true"), 125, "a")
    first.terminate()
    assert first.wait() == 128 + signal.SIGTERM


@needs_root
def test_socket_without_permission(machine):
    nobody = pwd.getpwnam("nobody")
    reach = subprocess.run(["test", "-x", str(BUILD / "allot")], user=nobody.pw_uid,
                           group=nobody.pw_gid, extra_groups=[], check=False)
    if reach.returncode != 0:
        pytest.skip(f"other users cannot reach {BUILD}, which may be in a home directory")
    tenant = machine.start("--", "sleep", "30")
    wait_until(lambda: (machine.run_dir / "allotd.sock").exists(), what="the daemon")
    # Other users may enter the directories, but may not open the socket.
    for path in [machine.base.parent.parent, machine.base.parent, machine.base, machine.run_dir]:
        path.chmod(0o755)
    (machine.run_dir / "allotd.sock").chmod(0o600)
    result = machine.allot("run", *machine.sim, "--", "true", user=nobody.pw_uid,
                           group=nobody.pw_gid, extra_groups=[])
    assert_one_error(result, 125, "allotd.sock", "ermission denied")
    tenant.kill()


@pytest.mark.skipif(not can_mount(), reason="can't mount here")
def test_full_dev_shm(ending_machine):
    script = ('mount -t tmpfs -o size=64k tmpfs /dev/shm && '
              '(dd if=/dev/zero of=/dev/shm/full bs=4k 2>/dev/null; :) && exec "$@"')
    result = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", BUILD / "allot", "run", *ending_machine.sim,
         "--", "true"], capture_output=True, text=True, env=ending_machine.environment, timeout=60,
        check=False)
    # allot needs no file there: it works, or prints one error.
    if result.returncode != 0:
        assert_one_error(result, 125)


@pytest.mark.skipif(not can_mount(), reason="can't mount here")
def test_full_run_directory(ending_machine):
    ending_machine.base.mkdir(mode=0o700)
    script = ('mount -t tmpfs -o size=16k,mode=700 tmpfs "$0" && '
              '(dd if=/dev/zero of="$0/full" bs=4k 2>/dev/null; :) && exec "$@"')
    result = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, ending_machine.base, BUILD / "allot", "run",
         *ending_machine.sim, "--", "true"], capture_output=True, text=True, env=ending_machine.environment,
        timeout=60, check=False)
    assert_one_error(result, 125)


@needs_root
def test_run_directory_of_someone_else(machine):
    machine.base.mkdir()
    os.chown(machine.base, 12345, 12345)
    assert_one_error(machine.run("--", "true"), 125, "uid 12345")
    assert not machine.servers()


def test_run_directory_open_to_others(machine):
    machine.base.mkdir()
    machine.base.chmod(0o777)
    assert_one_error(machine.run("--", "true"), 125, "others may write")
    assert not machine.servers()


@pytest.mark.parametrize("script, status", [
    ("exit 0", 0), ("exit 42", 42), ("kill -TERM $$", 128 + 15), ("kill -KILL $$", 128 + 9)])
def test_exit_status(ending_machine, script, status):
    result = ending_machine.run("--", "sh", "-c", script)
    assert result.returncode == status, result
    assert result.stderr == ""


def test_input_output_and_arguments(machine):
    result = machine.run("--", "sh", "-c", 'cat; echo "$1|$2" >&2', "sh", "a b", "--memory",
                         stdin=None, input="through\n")
    assert (result.stdout, result.stderr) == ("through\n", "a b|--memory\n")


def test_environment_of_the_command(machine2):
    result = machine2.run("--gpu", "1,0", "--", "env",
                          environment={"LD_PRELOAD": "", "LD_LIBRARY_PATH": "/x"})
    seen = dict(line.split("=", 1) for line in result.stdout.splitlines() if "=" in line)
    assert seen["LD_PRELOAD"] == str(BUILD / "liballot.so")
    assert seen["LD_LIBRARY_PATH"] == f"{BUILD / 'sim'}:/x"
    assert pathlib.Path(seen["ALLOT_SOCKET"]).parent.parent.parent == machine2.run_dir
    uuids = [device["uuid"] for device in machine2.ps()["devices"]]
    assert seen["CUDA_VISIBLE_DEVICES"].split(",") == [uuids[1], uuids[0]]


def test_selection_within_visible_devices(machine2):
    def chosen(visible, *options):
        result = machine2.run(*options, "--", "printenv", "CUDA_VISIBLE_DEVICES",
                              environment={"CUDA_VISIBLE_DEVICES": visible})
        return result.stdout.strip() if result.returncode == 0 else result.stderr

    first = machine2.start("--", "sleep", "30")
    wait_until(lambda: machine2.tenants(), what="the first tenant")
    zero, one = [device["uuid"] for device in machine2.ps()["devices"]]
    first.terminate()
    assert chosen("1", "--memory", "1GiB") == one
    assert chosen("1", "--gpu", "0") == one
    assert chosen("1,0", "--gpu", "all") == f"{one},{zero}"
    assert chosen(zero, "--gpu", zero) == zero
    assert "within CUDA_VISIBLE_DEVICES" in chosen("1", "--gpu", "1")
    assert "names no GPU" in chosen("")


def test_signal_to_allot_alone_reaches_the_command(machine):
    process = machine.start("--", "sh", "-c",
                            "trap 'echo got it; exit 3' TERM; echo up; while :; do sleep 0.05; done")
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=10)
    assert (output, errors, process.returncode) == ("got it\n", "", 3)


def test_signal_to_the_group_reaches_both(machine):
    process = machine.start("--", "sh", "-c", "echo up; exec sleep 30", start_new_session=True)
    assert process.stdout.readline() == "up\n"
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=10) == 128 + signal.SIGINT


def test_command_outlives_killed_allot(ending_machine):
    process = ending_machine.start("--", "sh", "-c", "echo $$; exec sleep 2")
    child = int(process.stdout.readline())
    process.kill()
    process.wait()
    assert pathlib.Path(f"/proc/{child}").exists()


def test_nested_run_is_refused(machine):
    result = machine.run("--", BUILD / "allot", "run", *machine.sim, "--", "true")
    assert_one_error(result, 125, "already in a tenant")


def test_servers_end_after_the_last_tenant(machine):
    assert machine.run("--", "true").returncode == 0
    begin = time.monotonic()
    machine.wait_until_gone()
    assert time.monotonic() - begin < 8


def test_two_runs_start_one_daemon(ending_machine):
    processes = [ending_machine.start("--memory", "1GiB", "--", "sleep", "3") for _ in range(8)]
    wait_until(lambda: len(ending_machine.ps()["tenants"]) == 8, what="eight tenants")
    lines = sorted(ending_machine.servers().values())
    assert len(lines) == 2, lines
    for process in processes:
        assert process.wait(timeout=20) == 0, process.stderr.read()


def test_unknown_simulated_gpu_in_other_commands(machine):
    """Commands that search for a daemon report the unknown name, and not a machine without tenants."""
    for command in ("ps", "tasks", "doctor", "topo"):
        done = machine.allot(command, "--sim", "h1000")
        assert done.returncode != 0, command
        assert "no GPU of that name" in done.stdout + done.stderr, command


def test_runs_follow_each_other(machine):
    """A run also works while the daemon of an earlier run is about to end."""
    begin = time.monotonic()
    runs = 0
    while time.monotonic() - begin < 8:
        result = machine.run("--", "true")
        assert result.returncode == 0, result.stderr
        runs += 1
        time.sleep(0.2 * (runs % 14))
    assert runs > 3


def test_daemon_killed_is_started_again(ending_machine):
    process = ending_machine.start("--name", "a", "--memory", "3GiB", "--", "sh", "-c", "echo up; sleep 4; exit 9")
    assert process.stdout.readline() == "up\n"
    daemon = [pid for pid, line in ending_machine.servers().items() if "/allotd " in line]
    assert len(daemon) == 1
    kill_servers(daemon[0])
    tenant = ending_machine.wait_for_tenant("a")
    assert tenant["devices"][0]["memory_quota_bytes"] == 3 * GIB
    assert [pid for pid, line in ending_machine.servers().items() if "/allotd " in line] != daemon
    output, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (9, "")


def test_orphans_keep_the_tenant(ending_machine):
    """A process that outlives the command remains in the tenant."""
    load = " ".join(ending_machine.load("--seconds", "4", "--mib", "512"))
    result = ending_machine.run("--name", "a", "--memory", "2GiB", "--", "sh", "-c",
                                f"{load} >/dev/null 2>&1 & sleep 1.5")
    assert result.returncode == 0
    assert ending_machine.tenants()["a"]["devices"][0]["memory_used_bytes"] > 512 << 20
    wait_until(lambda: not ending_machine.tenants(), what="the orphan's end")


def test_quota_is_enforced(machine):
    process = machine.run("--memory", "1GiB", "--",
                          *machine.load("--seconds", "0.5", "--mib", "128", "--alloc-over"))
    assert process.returncode == 0, process.stderr
    last = json.loads(process.stdout.splitlines()[-1])
    assert last["refused"]["error"] == "CUDA_ERROR_OUT_OF_MEMORY"
    assert last["refused"]["asked_bytes"] <= 1.1 * GIB


def test_version_and_help(machine):
    assert machine.allot("--version").stdout.startswith("allot ")
    for command in ("run", "ps", "set", "pause", "resume"):
        first = machine.allot("help", command)
        assert first.returncode == 0
        assert first.stdout.startswith(f"Usage: allot {command} ")
        assert machine.allot(command, "--help").stdout == first.stdout
    assert_one_error(machine.allot("rnu"), 2, "'rnu'", "did you mean run?")
    assert_one_error(machine.allot(), 2, "a command is missing")
    assert_one_error(machine.allot("ps", "--jsno"), 2, "did you mean --json?")
    assert_one_error(machine.allot("ps", "x"), 2, "unexpected argument")


def test_no_server_is_left(ending_machines):
    """Of the machines of all tests above that use ending_machine."""
    for machine in ending_machines:
        machine.wait_until_gone()
