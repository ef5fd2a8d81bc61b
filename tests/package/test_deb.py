"""Debian packages: they are the same bytes wherever they are built, and are installed, used, upgraded, removed and purged."""

import json
import os
import shutil
import subprocess

import pytest

from packages import ROOT, run
from roots import System


def names_of(debs):
    return sorted(name.split("_")[0] for name in debs if name.endswith(".deb") and "-dbgsym" not in name)


def test_packages_are_the_same_wherever_they_are_built(debs_twice):
    debs, again = debs_twice
    assert names_of(debs) == ["allot", "allot-scheduler", "liballot-client-dev", "liballot-client0", "python3-allot"]
    for name, path in debs.items():
        if name.endswith(".deb"):
            assert path.read_bytes() == again[name].read_bytes(), name


def test_lintian_finds_no_errors(debs):
    if not shutil.which("lintian"):
        pytest.skip("no lintian here")
    changes, = (path for name, path in debs.items() if name.endswith(".changes"))
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error", changes], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout


def test_liballot_needs_no_newer_glibc(debs, tmp_path):
    run("dpkg-deb", "-x", debs[next(name for name in debs if name.startswith("allot_") and name.endswith(".deb"))], tmp_path)
    library, = tmp_path.glob("usr/lib/*/allot/liballot.so")
    assert "not ok" not in run(ROOT / "scripts/check-symbols", library)


# Checks in the system after the packages were installed there.
CHECK_INSTALLED = r"""
set -e
getent group allot
test -f /lib/systemd/system/allotd.service
! test -e /etc/systemd/system/multi-user.target.wants/allotd.service
getent passwd allot-scheduler | grep -q nologin
test -f /lib/systemd/system/allot-scheduler.service
! test -e /etc/systemd/system/multi-user.target.wants/allot-scheduler.service
allotd --version
allot-scheduler --version
export ALLOT_RUN_DIR=/tmp/run
allot run --sim h200 --name a --memory 2GiB --cores 30 -- allot-load --json --seconds 1 >/tmp/a &
allot run --sim h200 --name b --memory 2GiB --cores 60 -- sh -c 'allot-load --json --seconds 1 && sleep 5' >/tmp/b &
while ! allot ps --sim h200 --json 2>/dev/null | grep -q '"b"'; do sleep 0.1; done
python3 -c '
import allot
client = allot.Client(simulated="h200")
client.set("b", memory_bytes=3 << 30)
print("quota", client.list().tenant("b").shares[0].memory_quota_bytes)'
wait
tail -n 1 /tmp/a
tail -n 1 /tmp/b
"""


def test_packages_install_run_upgrade_and_leave_nothing(debs):
    system = System()
    folder = next(iter(debs.values())).parent
    names = names_of(debs)
    archives = [f"/mnt/{name}" for name in debs if name.endswith(".deb") and "-dbgsym" not in name]

    def apt(*arguments):
        system.run(folder, "apt-get", "-qq", "-y", "--no-install-recommends", *arguments)

    if not (system.at / "ready").exists():
        # Their dependencies remain installed for the next run.
        apt("update")
        apt("install", *archives)
        apt("purge", *names)
        (system.at / "ready").touch()
    before = system.files()
    system.run(folder, "dpkg", "-i", *archives)
    try:
        output = system.run(folder, "sh", "-c", CHECK_INSTALLED).splitlines()
        assert output[0].startswith("allot:") and f"quota {3 << 30}" in output
        assert all(json.loads(line)["elapsed_s"] > 0 for line in output[-2:])
        (system.at / "var/lib/allot/gpu").mkdir(parents=True)
        system.run(folder, "dpkg", "-i", *archives)
        system.run(folder, "dpkg", "--remove", *names)
        assert (system.at / "var/lib/allot").exists() and not (system.at / "usr/bin/allot").exists()
    finally:
        system.run(folder, "dpkg", "--purge", *names)
    assert system.files() - before == set()
    assert "allot" not in os.listdir(system.at / "var/lib")
