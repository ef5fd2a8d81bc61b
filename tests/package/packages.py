"""Commands, and packages made by scripts/package."""

import os
import subprocess

from machines import ROOT


def run(*command, **more):
    """Its output; a test fails with what it said where it fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def make_packages(kind, at, tree=ROOT, **environment):
    """The packages of that kind, of a tree: {file name: path}."""
    (at / "tmp").mkdir(parents=True)
    run(tree / "scripts/package", "--quick", kind, at / "packages", umask=environment.pop("umask", 0o022),
        env={**os.environ, "TMPDIR": str(at / "tmp"), **environment})
    return {path.name: path for path in (at / "packages").iterdir()}
