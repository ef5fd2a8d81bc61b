"""The rights of the systemd units and of the pods: systemd's score of the units, the directories to which they let the programs
write, and the security contexts of the pods."""

import os
import re
import shutil
import subprocess

import pytest
import yaml

from machines import BUILD, ROOT

# The highest exposure by `systemd-analyze security` that a unit may have, times ten. For allotd, docs/decisions/least-privilege.md
# says what adds up to it.
SCORES = {"allotd": 50, "allot-scheduler": 15}
# Where systemd makes the directories of each setting.
BASES = {"RuntimeDirectory": "/run", "StateDirectory": "/var/lib", "LogsDirectory": "/var/log"}
# Settings of allotd whose default is a path: those to which allotd writes, and those that it only reads.
WRITTEN = {"kube_plugin_dir", "kube_dra_dir", "kube_cdi_dir"}
READ = {"kube_pod_resources"}


def unit_settings(program):
    """Returns {key: [word]} of the unit's section [Service]. A list that is given in several lines is one list."""
    text = (ROOT / f"deploy/systemd/{program}.service.in").read_text()
    settings = {}
    for key, value in re.findall(r"^(\w+)=(.*)$", text.partition("[Service]")[2], re.M):
        settings.setdefault(key, []).extend(value.split())
    return settings


def writable_directories(settings):
    made = [f"{base}/{name}" for key, base in BASES.items() for name in settings.get(key, [])]
    return made + [path.lstrip("-") for path in settings.get("ReadWritePaths", [])]


def is_writable(path, settings):
    path = re.sub(r"^/var/run/", "/run/", path)
    return any(path == top or path.startswith(f"{top}/") for top in writable_directories(settings))


def help_of(program):
    return subprocess.run([BUILD / program, "--help"], capture_output=True, text=True, check=True).stdout


def default_paths(program):
    """Returns {setting: path} of the settings whose default is a path."""
    return dict(re.findall(r"^  (\w+) +(/\S+) ", help_of(program), re.M))


@pytest.mark.parametrize("program", SCORES)
def test_the_unit_keeps_its_score(tmp_path, program):
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze here")
    version = subprocess.run(["systemd-analyze", "--version"], capture_output=True, text=True, check=True).stdout
    if int(re.search(r"\d+", version)[0]) < 250:
        pytest.skip("systemd-analyze before 250 can't score a file")
    unit = tmp_path / f"{program}.service"
    unit.write_text((ROOT / f"deploy/systemd/{program}.service.in").read_text().replace("@bindir@", "/usr/bin"))
    done = subprocess.run(["systemd-analyze", "security", "--no-pager", "--offline=true", f"--threshold={SCORES[program]}", unit],
                          capture_output=True, text=True, check=False, timeout=60, env={**os.environ, "LC_ALL": "C.UTF-8"})
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_daemon_may_write_to_its_default_paths():
    settings = unit_settings("allotd")
    assert settings["ProtectSystem"] == ["strict"]
    # Tenants' sockets stay while no daemon runs.
    assert settings["RuntimeDirectoryPreserve"] == ["yes"]
    defaults = default_paths("allotd")
    assert set(defaults) == WRITTEN | READ, "say in this test whether allotd writes to the new setting's path"
    paths = [defaults[name] for name in WRITTEN]
    paths += [re.search(pattern, help_of("allotd"))[1] for pattern in
              (r"--run-dir .*default (/\S+)", r"state_dir .*auto: below (/[^\s,]+)")]
    # The locks that daemons of different users have in common.
    locks = re.search(r"lock_dirs = .*?\{(.*?)\};", (ROOT / "src/daemon/util/lock.c").read_text(), re.S)[1]
    paths += re.findall(r' "(/[^"]+)"', locks.replace('PATHS_SYSTEM_BASE "', '"/run/allot'))
    # The example of allot-audit(5) for the setting audit_log.
    manual = (ROOT / "docs/reference/allot-audit.5").read_text()
    paths.append(re.search(r"audit_log = (/\S+)", manual)[1])
    assert len(paths) == 9, paths
    assert [path for path in paths if not is_writable(path, settings)] == []


def test_other_paths_are_not_writable():
    for program in SCORES:
        settings = unit_settings(program)
        for path in ("/etc/allot/allotd.conf", "/usr/bin/allotd", "/run/systemd/system/x.service", "/var/lib/dpkg", "/var/log/x"):
            assert not is_writable(path, settings), (program, path)


def test_the_daemon_keeps_what_the_sandbox_would_take():
    """Settings that look harmless and break allotd. docs/decisions/least-privilege.md says how."""
    settings = unit_settings("allotd")
    harmful = {"PrivateDevices", "ProtectClock", "DeviceAllow", "RestrictSUIDSGID", "ProtectControlGroups", "PrivateTmp",
               "PrivateNetwork", "PrivateUsers", "MemoryDenyWriteExecute", "MemoryMax"}
    assert not harmful & set(settings)
    assert settings["TasksMax"] == ["infinity"]


def pod_specs():
    """Yields (name, pod specification) of all workloads in deploy/kustomize, which the chart renders, and deploy/kubernetes."""
    for file in sorted([*ROOT.glob("deploy/kustomize/*.yaml"), *ROOT.glob("deploy/kubernetes/*.yaml")]):
        for one in yaml.safe_load_all(file.read_text()):
            if one and one["kind"] in ("Deployment", "DaemonSet", "Job", "StatefulSet"):
                yield one["metadata"]["name"], one["spec"]["template"]["spec"]


def test_only_the_daemons_pods_are_privileged():
    seen = []
    for name, spec in pod_specs():
        contexts = [container["securityContext"] for container in [*spec["containers"], *spec.get("initContainers", [])]]
        seen.append(name)
        if name == "allotd":
            assert contexts == [{"privileged": True}]
            continue
        assert not {"hostPID", "hostIPC", "hostNetwork"} & set(spec)
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for context in contexts:
            assert context == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                               "capabilities": {"drop": ["ALL"]}}
    assert "allotd" in seen and "allot-scheduler" in seen, seen
