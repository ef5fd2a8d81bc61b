"""What the tests of what is installed use: a simulated machine as in tests/integration, and `meson install`."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "tests/integration"))
_place = importlib.util.spec_from_file_location("machines", ROOT / "tests/integration/conftest.py")
machines = importlib.util.module_from_spec(_place)
sys.modules["machines"] = machines
_place.loader.exec_module(machines)

pytest_configure = machines.pytest_configure
built = machines.built
machine2 = machines.machine2


def run(*command, **more):
    """Its output; a test fails with what it said where it fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="session")
def tree():
    """Meson's tree of the build under test."""
    for place in (machines.BUILD / "meson", machines.BUILD.parent / "meson", machines.BUILD):
        if (place / "build.ninja").exists():
            return place
    return pytest.skip(f"{machines.BUILD}: no tree of meson's there; run scripts/build")


@pytest.fixture(scope="session")
def installed(tree, tmp_path_factory):
    """`meson install` there; what would be /usr/local."""
    at = tmp_path_factory.mktemp("installed")
    run("meson", "install", "-C", tree, "--no-rebuild", "--destdir", at)
    return at / "usr/local"


def make_packages(kind, at, tree=ROOT, **environment):
    """The packages of that kind, of a tree: {file name: path}."""
    (at / "tmp").mkdir(parents=True)
    run(tree / "scripts/package", "--quick", kind, at / "packages", umask=environment.pop("umask", 0o022),
        env={**os.environ, "TMPDIR": str(at / "tmp"), **environment})
    return {path.name: path for path in (at / "packages").iterdir()}


@pytest.fixture(scope="session")
def debs(tmp_path_factory):
    if not pathlib.Path("/etc/debian_version").exists():
        pytest.skip("this is no Debian and no Ubuntu")
    return make_packages("deb", tmp_path_factory.mktemp("first"))
