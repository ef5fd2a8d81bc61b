"""Settings and tuning of allotd in files and options, and the errors for those that are invalid."""

import json
import subprocess

import pytest

from machines import BUILD


def test_allot_config_applies_to_a_new_daemon(machine, tmp_path):
    settings = tmp_path / "settings"
    settings.write_text("policy = token\n")
    done = machine.run("--", "sh", "-c", f'{BUILD}/allot ps --json "$@"', "sh", *machine.sim,
                       cwd=tmp_path, environment={"ALLOT_CONFIG": "settings"})
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["devices"][0]["policy"] == "token"


def test_allot_config_is_ignored_by_a_running_daemon(machine, tmp_path):
    """allot run reports that ALLOT_CONFIG does not change a running daemon, unless that daemon has the same file."""
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


@pytest.mark.parametrize("text, parts", [
    (None, ["ALLOT_CONFIG: 'settings'", "No such file"]),
    ("quantum = soon\n", ["settings:1: quantum", "'soon'"]),
])
def test_invalid_settings_file(machine, tmp_path, text, parts):
    if text:
        (tmp_path / "settings").write_text(text)
    done = machine.run("--", "true", cwd=tmp_path, environment={"ALLOT_CONFIG": "settings"})
    assert done.returncode == 125
    assert all(part in done.stderr for part in parts), done.stderr


def allotd(*options):
    """Runs allotd until it ends. Returns the completed process."""
    return subprocess.run([BUILD / "allotd", "--foreground", *options], capture_output=True, text=True, timeout=30,
                          check=False)


@pytest.mark.parametrize("options, error", [
    (["--kube-slices", "0"], "command line: kube_slices: '0': out of range; write a whole number from 1 to 100"),
    (["--kube_slices=101"], "command line: kube_slices: '101': out of range"),
    (["--drain-min", "1s"], "command line: drain_min: is no longer a setting: its value is 10ms; remove it"),
    (["--free_depth=1ms"], "command line: free_depth: is no longer a setting: its value is 10ms; remove it"),
    (["--tuning", "/nowhere"], "/nowhere: No such file"),
    (["--volume-config", "/etc/x"], "command line: volume_config: '/etc/x': allot has no such setting: "),
    (["--query-port=x"], "command line: query_port: 'x': must be a port, 1 to 65535"),
])
def test_invalid_settings_as_options(options, error):
    done = allotd(*options)
    assert done.returncode == 1 and done.stderr.startswith(f"allotd: {error}"), done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_options_override_the_file(tmp_path):
    """Whichever name of the setting the file uses. But an invalid value in the file is still an error."""
    settings = tmp_path / "settings"
    settings.write_text("cordon = none\nkube_api = /nowhere\n")
    # It reads both and then fails, because that library is missing. It reports nothing of the API, which is off.
    done = allotd("--config", settings, "--run-dir", tmp_path / "run", "--standalone=true", "--nvml", "/nowhere.so",
                  "--log-level=error")
    assert done.returncode == 1 and "/nowhere.so" in done.stderr and "kube" not in done.stderr, done.stderr
    settings.write_text("kube_slices = 0\n")
    done = allotd("--config", settings, "--kube-slices", "3")
    assert done.returncode == 1 and f"{settings}:1: kube_slices: '0'" in done.stderr, done.stderr


@pytest.mark.parametrize("text, error", [
    ("quantum = 30ms", ":1: quantum: is a setting, so --tuning can't set it: write it to the file of --config"),
    ("kubeconfig = /k", ":1: kubeconfig: no such tuning (allotd --list-tuning lists all)"),
    ("depth = 5", ":1: depth: '5': must be from 10us to 1s"),
    ("drain_max = 5ms", ": drain_min: '10ms': must be at most the value of drain_max, '5ms'"),
])
def test_invalid_tuning(tmp_path, text, error):
    file = tmp_path / "tuning"
    file.write_text(text + "\n")
    done = allotd("--tuning", file)
    assert done.returncode == 1 and done.stderr.startswith(f"allotd: {file}{error}"), done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_tuning_is_listed_apart_from_settings():
    settings, tuning = allotd("--help").stdout, allotd("--list-tuning").stdout
    assert "\n  quantum " in settings and "\n  depth " not in settings
    assert "\n  depth " in tuning and "\n  quantum " not in tuning
