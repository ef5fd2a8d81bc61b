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


def one_line(result, status, *parts):
    """Asserts the exit status, and one line on stderr that has these parts."""
    assert result.returncode == status, result
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("allot: "), lines[0]
    for part in parts:
        assert part in lines[0], lines[0]
    return lines[0]


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


def test_ps_tells_of_a_simulated_gpu(machine, tmp_path):
    """The command in the hint works for a description file too."""
    spec = tmp_path / "cards.conf"
    spec.write_text("[gpu]\n")
    machine.sim = ["--sim", spec]
    machine.start("--name", "alone", "--", "sleep", "60")
    run_dir = wait_until(lambda: next(machine.base.glob("sim-cards-*/allotd.sock"), None), what="its daemon").parent
    hint = wait_until(lambda: machine.allot("ps").stderr, what="the hint")
    assert hint == f"allot: ps: a simulated GPU is in use; for its tenants: allot ps --run-dir {run_dir}\n"
    wait_until(lambda: "alone" in machine.allot("ps", "--run-dir", run_dir).stdout, what="its tenant")


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


def test_settings_of_the_daemon_that_is_started(machine, tmp_path):
    settings = tmp_path / "settings"
    settings.write_text("policy = token\n")
    done = machine.run("--", "sh", "-c", f'{BUILD}/allot ps --json "$@"', "sh", *machine.sim,
                       cwd=tmp_path, environment={"ALLOT_CONFIG": "settings"})
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["devices"][0]["policy"] == "token"


def test_settings_that_a_running_daemon_does_not_take(machine, tmp_path):
    """ALLOT_CONFIG changes nothing of a daemon that runs, which is said; the same file again is no reason to."""
    first, second = tmp_path / "first", tmp_path / "second"
    for settings in (first, second):
        settings.write_text("policy = token\n")
    tenant = machine.start("--name", "a", "--", "sleep", "60", environment={"ALLOT_CONFIG": str(first)})
    machine.wait_for_tenant("a")
    done = machine.run("--", "true", environment={"ALLOT_CONFIG": str(second)})
    assert done.returncode == 0
    assert f"ALLOT_CONFIG={second} is not used" in done.stderr and f"the settings of {first}" in done.stderr
    for environment in ({"ALLOT_CONFIG": str(first)}, {}):
        assert "ALLOT_CONFIG" not in machine.run("--", "true", environment=environment).stderr
    tenant.terminate()


def test_a_simulated_gpu_that_does_not_exist(machine):
    """Every command that looks for a daemon names the mistake, rather than an empty machine."""
    for command in ("ps", "tasks", "doctor", "topo"):
        done = machine.allot(command, "--sim", "h1000")
        assert done.returncode != 0, command
        assert "no GPU of that name" in done.stdout + done.stderr, command


def test_a_list_in_a_pipe_is_not_cut(machine):
    name = "job-123456-" + "x" * 52
    tenant = machine.start("--name", name, "--cores", "12.5", "--", "sleep", "60")
    machine.wait_for_tenant(name)
    done = machine.allot("ps", *machine.sim)
    assert name in done.stdout and "WAITED" in done.stdout
    tenant.terminate()


def test_tasks_of_a_private_daemon(machine):
    """A daemon of one user watches its tenants alone, whatever watch_tasks is."""
    tenant = machine.start("--name", "a", "--", "sleep", "60")
    machine.wait_for_tenant("a")
    done = machine.allot("tasks", *machine.sim)
    assert done.returncode == 0 and "watch_tasks" not in done.stderr
    assert "as a system service" in done.stderr
    tenant.terminate()


@pytest.mark.parametrize("text, says", [
    (None, ["ALLOT_CONFIG: 'settings'", "No such file"]),
    ("quantum = soon\n", ["settings:1: quantum", "'soon'"]),
])
def test_settings_that_are_not_right(machine, tmp_path, text, says):
    if text:
        (tmp_path / "settings").write_text(text)
    done = machine.run("--", "true", cwd=tmp_path, environment={"ALLOT_CONFIG": "settings"})
    assert done.returncode == 125
    assert all(part in done.stderr for part in says), done.stderr


def allotd(*options):
    return subprocess.run([BUILD / "allotd", "--foreground", *options], capture_output=True, text=True, timeout=30,
                          check=False)


@pytest.mark.parametrize("options, says", [
    (["--kube-slices", "0"], "command line: kube_slices: '0': out of range; write a whole number from 1 to 100"),
    (["--kube_slices=101"], "command line: kube_slices: '101': out of range"),
    (["--drain-min", "1s"], "command line: drain_min: is no longer a setting: its value is 10ms; remove it"),
    (["--free_depth=1ms"], "command line: free_depth: is no longer a setting: its value is 10ms; remove it"),
    (["--tuning", "/nowhere"], "/nowhere: No such file"),
    (["--volume-config", "/etc/x"], "command line: volume_config: '/etc/x': allot has no such setting: "),
    (["--query-port=x"], "command line: query_port: 'x': must be a port, 1 to 65535"),
])
def test_settings_as_options_that_are_not_right(options, says):
    done = allotd(*options)
    assert done.returncode == 1 and done.stderr.startswith(f"allotd: {says}"), done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_options_go_before_the_file(tmp_path):
    """So the file's word does not count, whichever of its names is used; what is wrong in the file does."""
    settings = tmp_path / "settings"
    settings.write_text("cordon = none\nkube_api = /nowhere\n")
    # It ends for want of that library, with both read; of the API, which is off, it says nothing.
    done = allotd("--config", settings, "--run-dir", tmp_path / "run", "--standalone=true", "--nvml", "/nowhere.so",
                  "--log-level=error")
    assert done.returncode == 1 and "/nowhere.so" in done.stderr and "kube" not in done.stderr, done.stderr
    settings.write_text("kube_slices = 0\n")
    done = allotd("--config", settings, "--kube-slices", "3")
    assert done.returncode == 1 and f"{settings}:1: kube_slices: '0'" in done.stderr, done.stderr


@pytest.mark.parametrize("text, says", [
    ("quantum = 30ms", ":1: quantum: is a setting, not a tuning: write it to the file of --config"),
    ("kubeconfig = /k", ":1: kubeconfig: no such tuning (allotd --list-tuning lists it)"),
    ("depth = 5", ":1: depth: '5': must be from 10us to 1s"),
    ("drain_max = 5ms", ": drain_min: '10ms' is above drain_max, '5ms'"),
])
def test_tuning_that_is_not_right(tmp_path, text, says):
    file = tmp_path / "tuning"
    file.write_text(text + "\n")
    done = allotd("--tuning", file)
    assert done.returncode == 1 and done.stderr.startswith(f"allotd: {file}{says}"), done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_tuning_is_listed_apart_from_settings():
    settings, tuning = allotd("--help").stdout, allotd("--list-tuning").stdout
    assert "\n  quantum " in settings and "\n  depth " not in settings
    assert "\n  depth " in tuning and "\n  quantum " not in tuning


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


def test_no_memory_option_means_the_rest(machine):
    machine.start("--name", "a", "--memory", "100GiB", "--", "sleep", "30")
    machine.wait_for_tenant("a")
    machine.start("--name", "b", "--", "sleep", "30")
    tenant = machine.wait_for_tenant("b")
    card = machine.ps()["devices"][0]["memory_bytes"]
    assert tenant["devices"][0]["memory_quota_bytes"] == card - 100 * GIB


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


def test_set_refusals(machine2):
    machine2.start("--name", "a", "--gpu", "all", "--memory", "2GiB", "--cores", "30", "--",
                   "sleep", "30")
    machine2.wait_for_tenant("a")
    for arguments, status, parts in (
            (["a"], 2, ["nothing to set"]),
            ([], 2, ["name"]),
            (["a", "b", "--memory", "1GiB"], 2, ["name"]),
            (["a", "--memory", "4XB"], 2, ["'4XB'"]),
            (["a", "--memory", "1GiB"], 1, []),  # which of the two?
            (["a", "--gpu", "7", "--memory", "1GiB"], 1, ["no such GPU"]),
            (["a", "--gpu", "0", "--memory", "2TiB"], 1, []),
            (["nobody", "--gpu", "0", "--memory", "1GiB"], 1, ["nobody"])):
        one_line(machine2.allot("set", *arguments, *machine2.sim), status, "allot: set: ", *parts)
    assert machine2.allot("set", "a", "--gpu", "1", "--memory", "1GiB",
                          *machine2.sim).returncode == 0
    quotas = [device["memory_quota_bytes"] for device in machine2.tenants()["a"]["devices"]]
    assert quotas == [2 * GIB, 1 * GIB]


def test_set_without_daemon(machine):
    one_line(machine.allot("set", "a", "--memory", "1GiB", *machine.sim), 1, "no daemon runs")
    assert not machine.servers()


def test_pause_and_resume(machine):
    machine.start("--name", "a", "--memory", "2GiB", "--", "sleep", "30")
    running = machine.wait_for_tenant("a")["state"]
    assert machine.allot("pause", "a", *machine.sim).returncode == 0
    assert machine.tenants()["a"]["state"] == "paused"
    assert machine.allot("resume", "a", *machine.sim).returncode == 0
    assert machine.tenants()["a"]["state"] == running
    one_line(machine.allot("pause", "nobody", *machine.sim), 1, "allot: pause: ", "nobody")


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
