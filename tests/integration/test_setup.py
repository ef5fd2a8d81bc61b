"""scripts/setup.sh installs the packages that a build needs: its messages when it can't install them."""

import os
import subprocess

import pytest

from machines import ROOT


@pytest.fixture
def install(tmp_path):
    """install(apt_get, uid) tries to install a package as user `uid` without sudo; the lines `apt_get` replace apt-get.
    It returns the CompletedProcess."""
    def run(apt_get, uid=0):
        for name, lines in (("apt-get", apt_get), ("id", f"echo {uid}")):
            (tmp_path / name).write_text(f"#!/bin/sh\n{lines}\n")
            (tmp_path / name).chmod(0o755)
        for name in ("sh", "env", "mktemp", "tail", "rm", "echo"):
            if not (tmp_path / name).exists():
                paths = f"/usr/bin/{name}", f"/bin/{name}"
                (tmp_path / name).symlink_to(next(path for path in paths if os.path.exists(path)))
        return subprocess.run(["/bin/sh", "-c", ". scripts/setup.sh; need false a-package; install_needed"], cwd=ROOT,
                              env={"PATH": str(tmp_path), "ALLOT_APT_WAIT_S": "7"}, capture_output=True, text=True, check=False)

    return run


def test_a_lock_of_another_apt_get_is_reported(install):
    done = install("echo E: Could not get lock /var/lib/dpkg/lock-frontend >&2; exit 100")
    assert done.returncode == 1
    assert "Could not get lock" in done.stderr and "could not install a-package" in done.stderr
    assert "as root" not in done.stderr


def test_the_script_waits_for_the_lock(install):
    done = install('case "$*" in *install*) case "$*" in *DPkg::Lock::Timeout=7*) exit 0 ;; esac ;; esac; exit 100')
    assert done.returncode == 0, done.stderr


def test_a_user_without_the_right_to_install_gets_the_command(install):
    done = install("exit 0", uid=1000)
    assert done.returncode == 1
    assert "please run as root: apt-get install a-package" in done.stderr
