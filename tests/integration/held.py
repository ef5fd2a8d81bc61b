"""Runs small C programs in a tenant that outlives them, so that the tenant's ledger can be read after their end."""

import os
import pathlib
import shutil
import subprocess

import pytest

from machines import BUILD

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
SIM = BUILD / "sim"
# The output of use.h under a quota of 4 GiB: the second allocation is refused.
GOVERNED = ["cuInit 0", "fits 0", "too much 2", "free 0", "release 0"]

# Runs its arguments, prints their exit status, and then waits for a line, so that the tenant continues to exist.
RUN_AND_WAIT = '"$@"; echo "status $?"; read -r line'


def compile_c(output, *arguments, compiler="gcc"):
    """Compiles files of programs/ (named without the folder) into output; skips without a compiler."""
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler} here")
    arguments = [PROGRAMS / a if str(a).endswith(".c") else a for a in arguments]
    done = subprocess.run([compiler, "-O1", "-Wall", "-Werror", "-o", output, *arguments],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return output


def link_with_driver():
    """Returns the compiler arguments that link with libcuda.so.1; they must precede the sources."""
    return ["-Wl,--no-as-needed", f"-L{SIM}", "-l:libcuda.so.1", "-lpthread", "-ldl"]


class Held:
    """A tenant with a quota of 4 GiB. run() runs one command in it and returns (lines of its output, status)."""

    def __init__(self, machine, *options, name="held", memory="4GiB", environment=None, **more):
        self.machine = machine
        self.name = name
        self.options = ["--name", name, "--memory", memory, *options]
        self.environment = environment or {}
        self.more = more

    def run(self, *command, timeout=60):
        process = self.machine.start(*self.options, "--", "sh", "-c", RUN_AND_WAIT, "sh", *command,
                                     stdin=subprocess.PIPE, environment=self.environment,
                                     **self.more)
        lines = []
        while not lines or not lines[-1].startswith("status "):
            line = process.stdout.readline()
            assert line, (lines, process.stderr.read())
            lines.append(line.rstrip("\n"))
        self.after()
        _, errors = process.communicate("\n", timeout=timeout)
        self.errors = errors
        return lines[:-1], int(lines[-1].split()[1])

    def after(self):
        """Waits until the tenant's ledger is at zero, as it must be whatever the command did."""
        tenant = self.machine.wait_for_tenant(
            self.name, lambda t: all(d["memory_used_bytes"] == 0 for d in t["devices"]))
        self.tenant = tenant


def environment_of_commands(**values):
    """Returns a command prefix that sets variables for one command only."""
    return ["env", *(f"{name}={value}" for name, value in values.items())]


def can_mount():
    return os.geteuid() == 0 and subprocess.run(
        ["unshare", "--mount", "true"], capture_output=True, check=False).returncode == 0


def find_library(name):
    """Returns the path of a library of the system; skips the test if there is none."""
    for place in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"):
        if (pathlib.Path(place) / name).exists():
            return pathlib.Path(place) / name
    return pytest.skip(f"no {name} here")
