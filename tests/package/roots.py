"""A root directory with this machine's own release, made by debootstrap on first use and kept. Packages are installed and
purged in it: nothing may be left of them."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from packages import ROOT, run

# Runs a command in the root, in new namespaces, so that its mounts and processes end with it.
INSIDE = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
          'mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/tmp" && mount --bind "$1" "$0/mnt" && '
          'shift && exec chroot "$@"']


def release():
    return dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', pathlib.Path("/etc/os-release").read_text(), re.M))


class System:
    """A root directory with this machine's release; it is made if it does not exist."""

    def __init__(self):
        own = release()
        self.at = ROOT / f"build/roots/{own['VERSION_CODENAME']}-packages"
        if os.getuid() != 0 or not shutil.which("debootstrap"):
            pytest.skip("making a root directory needs root and debootstrap")
        if not self.at.exists():
            self.make(own)

    def make(self, own):
        new = self.at.with_name(self.at.name + ".new")
        shutil.rmtree(new, ignore_errors=True)
        new.parent.mkdir(parents=True, exist_ok=True)
        sites = run("apt-get", "indextargets", "--format", "$(SITE)").split()
        done = subprocess.run(["debootstrap", "--variant=minbase", "--include=ca-certificates", own["VERSION_CODENAME"], new,
                               sites[0]], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"debootstrap: {done.stdout.strip().splitlines()[-1]}")
        # The new system uses the mirrors and proxies of this machine.
        for name in ("etc/resolv.conf", "etc/apt/apt.conf", "etc/apt/sources.list"):
            if pathlib.Path("/", name).exists():
                shutil.copy(pathlib.Path("/", name), new / name)
        for name in ("etc/apt/apt.conf.d", "etc/apt/sources.list.d"):
            shutil.copytree(pathlib.Path("/", name), new / name, dirs_exist_ok=True)
        new.rename(self.at)

    def run(self, shared, *command, **more):
        """Runs a command in the system, with the folder `shared` mounted at /mnt; returns its output."""
        return run(*INSIDE, self.at, shared, self.at, "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8",
                   "DEBIAN_FRONTEND=noninteractive", *command, **more)

    def files(self):
        """The paths that packages could leave behind, except records of apt and dpkg and directories of the running system."""
        ignored = ("var/lib/dpkg", "var/lib/apt", "var/cache", "var/log", "proc", "tmp", "mnt", "run", "dev", "sys")
        return {str(path.relative_to(self.at)) for path in self.at.rglob("*")
                if not str(path.relative_to(self.at)).startswith(ignored)}
