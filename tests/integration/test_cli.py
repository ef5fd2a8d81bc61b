"""The command line: bad input, exit statuses, ps and set; afterwards no process is left running."""

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
from cli_checks import one_line
from held import can_mount

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make this happen")


@pytest.fixture(scope="module")
def endings():
    """Machines that are left to end by themselves, which takes seconds: all of them at once."""
    machines = []
    yield machines
    for machine in machines:
        machine.clean()


@pytest.fixture
def ending(tmp_path_factory, endings):
    """One simulated H200, of which nothing may be left: test_nothing_is_left looks."""
    endings.append(make_machine(tmp_path_factory, "h200"))
    return endings[-1]


# Bad input that is known to be bad before anything is started.
KNOWN_BEFORE = [
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


@pytest.mark.parametrize("options, status, parts", KNOWN_BEFORE,
                         ids=[" ".join(row[0]) for row in KNOWN_BEFORE])
def test_bad_option(machine, options, status, parts):
    one_line(machine.run(*options, "--", "true"), status, *parts)
    assert not machine.servers()
    assert not machine.base.exists()


def test_no_command(machine):
    one_line(machine.run(), 125, "the command to run is missing")
    one_line(machine.run("--memory"), 125, "--memory: a value is missing")


def test_command_not_found(machine):
    one_line(machine.run("--", "no-such-command"), 127, "'no-such-command'", "not found")
    one_line(machine.run("--", "/no/such/command"), 127, "not found")
    assert not machine.base.exists()


def test_command_may_not_run(machine, tmp_path):
    data = tmp_path / "data"
    data.write_text("x")
    one_line(machine.run("--", data), 126, "Permission denied")
    one_line(machine.run("--", tmp_path), 126, "Is a directory")
    assert not machine.base.exists()


def test_interpreter_missing(ending, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    one_line(ending.run("--", script), 127, str(script))


def test_more_memory_than_the_card_has(ending):
    one_line(ending.run("--memory", "1TiB", "--", "true"), 125, "memory")


def test_unknown_gpu_lists_what_there_is(machine2):
    one_line(machine2.run("--gpu", "5", "--", "true"), 125, "'5'", "no such GPU", "0 (", "1 (",
             "GPU-")
    one_line(machine2.run("--gpu", "GPU-0000", "--", "true"), 125, "'GPU-0000'", "no such GPU")
    machine2.wait_until_gone()


def test_unknown_simulated_gpu(ending):
    one_line(ending.allot("run", "--sim", "h2000", "--", "true"), 125, "--sim", "h2000")


def test_bad_description_file(ending, tmp_path):
    spec = tmp_path / "cards.conf"
    spec.write_text("[gpu]\nmemory = lots\n")
    one_line(ending.allot("run", "--sim", spec, "--", "true"), 125, "--sim", "lots")


def test_no_gpu_says_how_to_get_one(machine):
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
        pytest.skip("this machine has NVIDIA's driver")
    except OSError:
        pass
    one_line(machine.allot("run", "--", "true"), 125, "no GPU", "driver", "--sim h200")
    assert not machine.base.exists()


def test_promises_have_an_end(ending):
    first = ending.start("--name", "a", "--cores", "60", "--memory", "100GiB", "--", "sleep", "30")
    ending.wait_for_tenant("a")
    one_line(ending.run("--memory", "100GiB", "--", "true"), 125)
    one_line(ending.run("--name", "a", "--", "true"), 125, "a")
    first.terminate()
    assert first.wait() == 128 + signal.SIGTERM


@needs_root
def test_socket_without_permission(machine):
    nobody = pwd.getpwnam("nobody")
    reach = subprocess.run(["test", "-x", str(BUILD / "allot")], user=nobody.pw_uid,
                           group=nobody.pw_gid, extra_groups=[], check=False)
    if reach.returncode != 0:
        pytest.skip(f"{BUILD} is closed to others, as a home directory may be")
    tenant = machine.start("--", "sleep", "30")
    wait_until(lambda: (machine.run_dir / "allotd.sock").exists(), what="the daemon")
    # The way to the socket is open, the socket is not.
    for path in [machine.base.parent.parent, machine.base.parent, machine.base, machine.run_dir]:
        path.chmod(0o755)
    (machine.run_dir / "allotd.sock").chmod(0o600)
    result = machine.allot("run", *machine.sim, "--", "true", user=nobody.pw_uid,
                           group=nobody.pw_gid, extra_groups=[])
    one_line(result, 125, "allotd.sock", "ermission denied")
    tenant.kill()


@pytest.mark.skipif(not can_mount(), reason="can't mount here")
def test_full_dev_shm(ending):
    script = ('mount -t tmpfs -o size=64k tmpfs /dev/shm && '
              '(dd if=/dev/zero of=/dev/shm/full bs=4k 2>/dev/null; :) && exec "$@"')
    result = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", BUILD / "allot", "run", *ending.sim,
         "--", "true"], capture_output=True, text=True, env=ending.environment, timeout=60,
        check=False)
    # Nothing of allot lives there: it works, or says why not.
    if result.returncode != 0:
        one_line(result, 125)


@pytest.mark.skipif(not can_mount(), reason="can't mount here")
def test_full_run_directory(ending):
    ending.base.mkdir(mode=0o700)
    script = ('mount -t tmpfs -o size=16k,mode=700 tmpfs "$0" && '
              '(dd if=/dev/zero of="$0/full" bs=4k 2>/dev/null; :) && exec "$@"')
    result = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, ending.base, BUILD / "allot", "run",
         *ending.sim, "--", "true"], capture_output=True, text=True, env=ending.environment,
        timeout=60, check=False)
    one_line(result, 125)


@needs_root
def test_run_directory_of_someone_else(machine):
    machine.base.mkdir()
    os.chown(machine.base, 12345, 12345)
    one_line(machine.run("--", "true"), 125, "uid 12345")
    assert not machine.servers()


def test_run_directory_open_to_others(machine):
    machine.base.mkdir()
    machine.base.chmod(0o777)
    one_line(machine.run("--", "true"), 125, "others may write")
    assert not machine.servers()


@pytest.mark.parametrize("script, status", [
    ("exit 0", 0), ("exit 42", 42), ("kill -TERM $$", 128 + 15), ("kill -KILL $$", 128 + 9)])
def test_exit_status(ending, script, status):
    result = ending.run("--", "sh", "-c", script)
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

    keeper = machine2.start("--", "sleep", "30")
    wait_until(lambda: machine2.tenants(), what="the first tenant")
    zero, one = [device["uuid"] for device in machine2.ps()["devices"]]
    keeper.terminate()
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


def test_killed_allot_leaves_nothing(ending):
    process = ending.start("--", "sh", "-c", "echo $$; exec sleep 2")
    child = int(process.stdout.readline())
    process.kill()
    process.wait()
    assert pathlib.Path(f"/proc/{child}").exists()


def test_one_within_another_is_refused(machine):
    result = machine.run("--", BUILD / "allot", "run", *machine.sim, "--", "true")
    one_line(result, 125, "already in a tenant")


def test_servers_end_after_the_last_tenant(machine):
    assert machine.run("--", "true").returncode == 0
    begin = time.monotonic()
    machine.wait_until_gone()
    assert time.monotonic() - begin < 8


def test_two_runs_start_one_daemon(ending):
    processes = [ending.start("--memory", "1GiB", "--", "sleep", "3") for _ in range(8)]
    wait_until(lambda: len(ending.ps()["tenants"]) == 8, what="eight tenants")
    lines = sorted(ending.servers().values())
    assert len(lines) == 2, lines
    for process in processes:
        assert process.wait(timeout=20) == 0, process.stderr.read()


def test_a_simulated_gpu_that_does_not_exist(machine):
    """Every command that looks for a daemon names the mistake, rather than an empty machine."""
    for command in ("ps", "tasks", "doctor", "topo"):
        done = machine.allot(command, "--sim", "h1000")
        assert done.returncode != 0, command
        assert "no GPU of that name" in done.stdout + done.stderr, command


def test_run_after_run(machine):
    """A daemon that is about to end is no obstacle."""
    begin = time.monotonic()
    runs = 0
    while time.monotonic() - begin < 8:
        result = machine.run("--", "true")
        assert result.returncode == 0, result.stderr
        runs += 1
        time.sleep(0.2 * (runs % 14))
    assert runs > 3


def test_daemon_killed_is_started_again(ending):
    process = ending.start("--name", "a", "--memory", "3GiB", "--", "sh", "-c",
                            "echo up; sleep 4; exit 9")
    assert process.stdout.readline() == "up\n"
    daemon = [pid for pid, line in ending.servers().items() if "/allotd " in line]
    assert len(daemon) == 1
    kill_servers(daemon[0])
    tenant = ending.wait_for_tenant("a")
    assert tenant["devices"][0]["memory_quota_bytes"] == 3 * GIB
    assert [pid for pid, line in ending.servers().items() if "/allotd " in line] != daemon
    output, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (9, "")


def test_orphans_keep_the_tenant(ending):
    """A process that the command leaves behind stays in the tenant."""
    load = " ".join(ending.load("--seconds", "4", "--mib", "512"))
    result = ending.run("--name", "a", "--memory", "2GiB", "--", "sh", "-c",
                         f"{load} >/dev/null 2>&1 & sleep 1.5")
    assert result.returncode == 0
    assert ending.tenants()["a"]["devices"][0]["memory_used_bytes"] > 512 << 20
    wait_until(lambda: not ending.tenants(), what="the orphan's end")


def test_quota_is_seen_and_held(machine):
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
    one_line(machine.allot("rnu"), 2, "'rnu'", "did you mean run?")
    one_line(machine.allot(), 2, "a command is missing")
    one_line(machine.allot("ps", "--jsno"), 2, "did you mean --json?")
    one_line(machine.allot("ps", "x"), 2, "unexpected argument")


def test_nothing_is_left(endings):
    """By all tests before with a machine that ends by itself."""
    for machine in endings:
        machine.wait_until_gone()
