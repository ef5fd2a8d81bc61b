"""Runs commands, and makes packages with scripts/package."""

import os
import subprocess

from machines import ROOT


def run(*command, **more):
    """Runs the command; returns its output. On failure the test fails with the end of the output."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def make_packages(kind, at, tree=ROOT, **environment):
    """Builds the packages of that kind from a tree, below the folder `at`; returns {file name: path}."""
    (at / "tmp").mkdir(parents=True)
    run(tree / "scripts/package", "--quick", kind, at / "packages", umask=environment.pop("umask", 0o022),
        env={**os.environ, "TMPDIR": str(at / "tmp"), **environment})
    return {path.name: path for path in (at / "packages").iterdir()}
