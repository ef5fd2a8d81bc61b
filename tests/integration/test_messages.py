"""Error messages: one line that states the error, its reason and the remedy. Each row of the tables has the user's mistake, the
value that the message must name, and part of the remedy."""

import json
import os
import socket
import subprocess

import pytest

from machines import BUILD
from scheduler import Scheduler, gpu_pod, review
from servers import start_servers

LINE_MOST = 400


def check(message, value, remedy):
    """Checks that the message is one printable line, and names first the value and then the remedy."""
    assert message.count("\n") == 1 and message.endswith("\n"), message
    assert len(message) <= LINE_MOST and message[:-1].isprintable(), message
    assert value in message and remedy in message, message
    # The remedy follows the error.
    assert message.index(value) <= message.index(remedy), message


RUN = [
    (["--cores", "130"], "'130'", "write a number of percent"),
    (["--cores", "0"], "'0'", "write a number of percent"),
    (["--cores", "much"], "'much'", "write a number of percent"),
    (["--cores", "30", "--cores-limit", "20"], "'20'", "write 30 to 100"),
    (["--memory", "-1"], "'-1'", "write for example 4GiB"),
    (["--memory", "4GiBB"], "'4GiBB'", "write for example 4GiB"),
    (["--memory", "99999GiB"], "97.66 TiB", "at most"),
    (["--gpu", "7"], "'7'", "available: 0"),
    (["--gpu", "x"], "'x'", "write an index such as 0"),
    (["--priority", "5000"], "'5000'", "write a whole number from -100 to 100"),
    (["--on-full", "maybe"], "'maybe'", "must be fail, wait or swap"),
    (["--on-full", "swap"], "'swap'", "needs --memory, such as --memory 4GiB"),
    (["--on-full", "swap", "--memory", "1GiB", "--swap-arena", "x"], "'x'", "write for example 4GiB"),
    (["--wait-timeout", "5s"], "--wait-timeout", "only with --on-full wait"),
    (["--policy", "nonsense"], "'nonsense'", "must be lease, feedback or token"),
    (["--sharing", "nonsense"], "'nonsense'", "must be time or space"),
    (["--sharing", "auto"], "'auto'", "was removed; must be time or space"),
    (["--name", "a b"], "'a b'", "use 1 to 63 letters"),
    (["--cores", "0.3"], "'0.3'", "write 30 for that part of a GPU, or 0.3%"),
    (["--memery", "4GiB"], "--memery", "did you mean --memory?"),
    (["--name", "taken"], "'taken'", "choose another"),
    (["--sharing", "time", "--group", "x"], "'x'", "only with --sharing space"),
    (["--group", "x"], "'x'", "possible only with sharing 'space'"),
    (["--sharing", "space", "--memory", "1GiB", "--on-full", "swap"], "'space'", "use on_full 'fail' or 'wait'"),
    (["--sharing", "space", "--cores-limit", "0.5%"], "0.5", "must be"),
    (["--swap-arena", "1GiB", "--memory", "1GiB"], "--swap-arena", "only with --on-full swap"),
    (["--reserve", "1GiB"], "--reserve", "only with --on-full wait"),
    (["--on-full", "wait", "--memory", "1GiB", "--reserve", "4GiB"], "is more than --memory", "write at most"),
    (["--on-full", "wait"], "'wait'", "needs --memory, such as --memory 4GiB"),
    (["--on-full", "wait", "--memory", "1GiB", "--wait-timeout", "soon"], "'soon'", "write for example 2"),
    (["--on-violation", "shoot"], "'shoot'", "must be report, freeze or end"),
    (["--elastic", "maybe"], "'maybe'", "must be on or off"),
]


def test_errors_of_run(machine):
    tenant = machine.start("--name", "taken", "--", "sleep", "60")
    machine.wait_for_tenant("taken")
    for options, value, remedy in RUN:
        done = machine.run(*options, "--", "true")
        assert done.returncode == 125, (options, done)
        check(done.stderr, value, remedy)
    # Quotas that sum to over 100 % are accepted, with a warning that states the present guarantee.
    other = machine.start("--name", "other", "--cores", "70", "--", "sleep", "60")
    machine.wait_for_tenant("other")
    done = machine.run("--cores", "70", "--", "true")
    assert done.returncode == 0
    check(done.stderr, "guarantees add up to 140 %", "50 % are guaranteed for now")
    other.terminate()
    tenant.terminate()


COMMANDS = [
    (["set", "nobody", "--cores", "30"], 1, "'nobody'", "allot ps lists them"),
    (["set"], 2, "tenant's name", "allot ps lists them"),
    (["pause", "nobody"], 1, "'nobody'", "allot tasks list them"),
    (["cordon", "9"], 1, "'9'", "available: 0"),
    (["cdi", "create", "a b"], 2, "'a b'", "use 1 to 63 letters"),
    (["cdi", "create", "taken"], 1, "'taken'", "choose another"),
    (["cdi", "remove", "nobody"], 1, "'nobody'", "allot cdi list shows the devices"),
    (["cdi", "create", "x", "--output", "/no/such"], 1, "/no/such", "with --output DIR"),
    (["set", "taken"], 2, "nothing to set", "write for example: allot set NAME"),
    (["set", "taken", "--memory", "4GiBB"], 2, "'4GiBB'", "write for example 4GiB"),
    (["set", "taken", "--gpu", "7", "--cores", "5"], 1, "'7'", "available: 0"),
    (["pause", "taken", "--swap-out"], 1, "'taken'", "pause it without"),
    (["pause", "taken", "--no-wait"], 2, "--no-wait", "add that, or leave out --no-wait"),
    (["resume", "nobody"], 1, "'nobody'", "allot tasks list them"),
    (["uncordon", "9"], 1, "'9'", "available: 0"),
    (["trace", "nobody"], 1, "'nobody'", "allot ps lists them"),
    (["trace", "taken", "--seconds", "-1"], 2, "'-1'", "must be more than 0"),
    (["trace", "taken", "--output", "/no/such"], 1, "'/no/such'", "name a file that can be written"),
    (["top", "--interval", "0"], 2, "'0'", "must be more than 0"),
    (["top", "--once", "--sort", "x"], 2, "'x'", "must be name, gpu"),
    (["tasks", "--nonsense"], 2, "--nonsense", "--help lists the options"),
    (["bench", "nonsense"], 2, "'nonsense'", "--list lists them"),
    (["bench", "pair", "--json", "/no/such/x"], 2, "'/no/such/x'", "name another"),
]


def test_errors_of_other_commands(machine):
    tenant = machine.start("--name", "taken", "--", "sleep", "60")
    machine.wait_for_tenant("taken")
    for arguments, status, value, remedy in COMMANDS:
        done = machine.allot(*arguments, *machine.sim)
        assert done.returncode == status, (arguments, done)
        check(done.stderr, value, remedy)
    for arguments, value, remedy in [
            (["explain", "a/b/c"], "'a/b/c'", "must be a name"), (["cdi", "frob"], "'frob'", "must be create"),
            (["explain", "pod", "--server", "x"], "'x'", "must be https://HOST:PORT"),
            (["mirror"], "one directory", "to make"), (["topo", "--sim", "x"], "'x'", "write for example h200"),
            (["run"], "the command to run is missing", "write for example: allot run")]:
        check(machine.allot(*arguments).stderr, value, remedy)
    check(machine.allot("frobnicate").stderr, "'frobnicate'", "see allot help")
    check(machine.allot("run", "--sim", "nonsense", "--", "true").stderr, "'nonsense'", "write for example h200")
    tenant.terminate()


SETTINGS = [
    ("quantum = 5", "'5'", "must be from 100us to 1s"),
    ("policy = x", "'x'", "must be lease, feedback or token"),
    ("sharing = both", "'both'", "must be time or space"),
    ("sharing = auto", ":1: sharing: 'auto'", "was removed; must be time or space"),
    ("depth = 3ms", "its value is 2ms", "remove it"),
    ("feedback_p = 2", "its value is auto", "remove it"),
    ("nonsense = 3", "nonsense", "allotd --help lists them"),
    ("cores", "cores", "must be 'key = value'"),
    ("freeze_threshold = -1", "'-1'", "write for example 4GiB"),
    ("state_dir = rel", "'rel'", "must be auto, or a full path"),
    ("audit_log = rel", "'rel'", "must be off, or a full path"),
    ("library_keys = /k", "library_manifest", "set both, or neither"),
    ("metrics_tls_key = /k", "metrics_tls_certificate", "must be set too"),
    ("metrics_listen = 0.0.0.0:9400", "0.0.0.0:9400", "metrics_token_file"),
    ("kube_plugin = on\nkube_resource = gpu", "gpu", "must be"),
    ("health_ignore_xids = x", "'x'", "must be"),
    ("container_engines = x", "'x'", "must be"),
]


def command_line(program, *arguments, status=1):
    """Runs the program, which must end with `status`; returns its stderr."""
    done = subprocess.run([BUILD / program, *arguments], capture_output=True, text=True, check=False, timeout=20,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == status, done
    return done.stderr


def test_errors_of_settings(tmp_path):
    file = tmp_path / "conf"
    for text, value, remedy in SETTINGS:
        file.write_text(text + "\n")
        check(command_line("allotd", "--check-config", file), value, remedy)
    for program in ("allotd", "allot-scheduler"):
        check(command_line(program, "--nonsense", "3"), "--nonsense", f"see {program} --help")
        check(command_line(program, "--config"), "--config", f"see {program} --help")
        check(command_line(program, "now"), "'now'", f"{program} --help")


@pytest.mark.parametrize("program, settings", [("allotd", ("state_dir = /tmp/x", "audit_log = /x", "kube_labels = x")),
                                               ("allot-scheduler", ("audit_log = /x", "scheduler_name = x"))])
def test_settings_must_be_utf8(program, settings, tmp_path):
    """Bytes that are not UTF-8 can't be shown in JSON, on a page, or in a Node's annotation."""
    file = tmp_path / "settings"
    for setting in settings:
        for bad in (b"\xff", b"\x1b", b"\xed\xa0\x80"):
            file.write_bytes(setting.encode() + bad + b"\n")
            done = subprocess.run([BUILD / program, "--check-config", file], capture_output=True, text=True, check=False)
            assert done.returncode == 1
            check(done.stderr, setting.split()[0], "is not UTF-8")


def test_errors_of_run_directories(machine, tmp_path):
    """A daemon that can't start in the run directory that it was given."""
    start_servers(machine, tmp_path, "")
    sim = ["--sim-socket", machine.run_dir / "sim.sock", "--nvml", BUILD / "sim" / "libnvidia-ml.so.1"]

    def start(run_dir, *more):
        return command_line("allotd", "--private", "--foreground", "--run-dir", run_dir, *sim, *more).splitlines(True)[-1]

    long = tmp_path / ("x" * 90)
    check(start(long), str(long), "at most 79 bytes")
    bad = os.fsencode(tmp_path) + b"/\xff"
    check(start(bad), f"{tmp_path}/?", "set ALLOT_RUN_DIR to another directory")
    done = machine.run("--", "true", environment={"ALLOT_RUN_DIR": bad})
    assert done.returncode == 125
    check(done.stderr, f"{tmp_path}/?", "set ALLOT_RUN_DIR to another directory")
    check(start(machine.run_dir), str(machine.run_dir), "end it first, or name another --run-dir")
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    check(start(other), "another allotd shares this GPU", "end it first")
    other.chmod(0o777)
    check(start(other), str(other), "run chmod 700 on it")
    if os.geteuid() == 0:
        other.chmod(0o700)
        os.chown(other, 4711, -1)
        check(start(other), "uid 4711", "set ALLOT_RUN_DIR to a directory of your own")


PODS = [
    ({"nvidia.com/gpu": "-1"}, {}, "'-1'", "must be a whole number of GPUs"),
    ({"nvidia.com/gpu": "0.5"}, {}, "'0.5'", "must be a whole number of GPUs"),
    ({"nvidia.com/gpu": "99999999999999999999"}, {}, "99999999999999999999", "must be"),
    ({"nvidia.com/gpu": "2000"}, {}, "'2000'", "up to 1024"),
    ({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "0"}, {}, "'0'", "must be"),
    ({"nvidia.com/gpumem": "8GiB"}, {}, "'8GiB'", "must be a whole number of MiB"),
    ({"nvidia.com/gpucores": "101"}, {}, "'101'", "must be 0 to 100"),
    ({"tencent.com/vcuda-core": "30"}, {}, "tencent.com/vcuda-core", "needs tencent.com/vcuda-memory"),
    ({"nvidia.com/gpu": "1", "tencent.com/vcuda-core": "100"}, {}, "tencent.com/vcuda-core", "use resources of one kind only"),
    ({"nvidia.com/gpu": "1"}, {"allot.dev/workload": "play"}, "'play'", "must be training or inference"),
]


def test_errors_of_pods(tmp_path):
    """The webhook denies the pod; kubectl shows the message of the status."""
    scheduler = Scheduler(tmp_path)
    try:
        for limits, annotations, value, remedy in PODS:
            pod = gpu_pod(limits)
            pod["metadata"].setdefault("annotations", {}).update(annotations)
            status, answer = scheduler.post("/webhook", review(pod))
            response = answer["response"]
            assert status == 200 and not response["allowed"], (limits, response)
            check(response["status"]["message"] + "\n", value, remedy)
    finally:
        scheduler.stop()


def test_errors_of_protocol_requests(machine, tmp_path):
    """The daemon's own messages, to a program that speaks its protocol."""
    start_servers(machine, tmp_path, "")
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(machine.run_dir / "allotd.sock"))
        file = connection.makefile("rw")
        for request, value, remedy in [
                ({"op": "dance"}, "'dance'", "unknown operation"),
                ({"op": "set", "name": "x"}, "'x'", "allot ps lists them"),
                ({"op": "create", "devices": [{"index": 7}]}, "7", "must be 0 to 0"),
                ({"op": "create", "devices": [{"cores_pct": 130}]}, "130", "must be"),
                ({"op": "create", "on_full": "maybe"}, "'maybe'", "must be fail, wait or swap"),
                ({"op": "hello", "version": 9}, "9", "this daemon speaks version 1")]:
            file.write(json.dumps({"version": 1, **request}) + "\n")
            file.flush()
            answer = json.loads(file.readline())
            assert not answer["ok"]
            check(answer["error"] + "\n", value, remedy)


@pytest.mark.parametrize("text", ["{", "[]", '{"version":1}'])
def test_malformed_requests(machine, tmp_path, text):
    start_servers(machine, tmp_path, "")
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(machine.run_dir / "allotd.sock"))
        connection.sendall(text.encode() + b"\n")
        error = json.loads(connection.makefile().readline())["error"]
        assert "\n" not in error
        assert any(reason in error for reason in ("not JSON: column", "must be one JSON object", "missing"))
