"""Tests of installations by meson, pip, dpkg and rpm, on a simulated machine as in tests/integration."""

import pathlib
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "integration"))

from fixtures import built, machine2, pytest_configure  # noqa: E402, F401
from machines import BUILD  # noqa: E402
from packages import ROOT, make_packages, run  # noqa: E402


@pytest.fixture(scope="session")
def tree():
    """Meson's build directory of the build under test."""
    for directory in (BUILD / "meson", BUILD.parent / "meson", BUILD):
        if (directory / "build.ninja").exists():
            return directory
    return pytest.skip(f"{BUILD}: no meson build directory; run scripts/build")


@pytest.fixture(scope="session")
def installed(tree, tmp_path_factory):
    """Runs `meson install` into a temporary root; returns its usr/local."""
    root = tmp_path_factory.mktemp("installed")
    run("meson", "install", "-C", tree, "--no-rebuild", "--destdir", root)
    return root / "usr/local"


def copy_without_git(to):
    """Copies the source tree without git, like the source of a release; returns the copy."""
    for path in run("git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        if path and (ROOT / path).exists():
            (to / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, to / path)
    return to


@pytest.fixture(scope="session")
def debs_twice(tmp_path_factory):
    """Builds the packages in this tree, and in a copy of it elsewhere with other settings. Both builds run at once, since the
    last steps of a package use only one processor."""
    if not pathlib.Path("/etc/debian_version").exists():
        pytest.skip("this is no Debian and no Ubuntu")
    first, second = tmp_path_factory.mktemp("first"), tmp_path_factory.mktemp("second")
    other = copy_without_git(second / "another folder's depth/tree")
    run("sh", "-c", ". scripts/setup.sh; need_build_tools; need_deb_tools; install_needed", cwd=ROOT)
    with ThreadPoolExecutor() as executor:
        builds = [executor.submit(make_packages, "deb", first),
                  executor.submit(make_packages, "deb", second / "at", tree=other, umask=0o027, TZ="Asia/Tokyo", LC_ALL="C",
                                  HOME=str(second), GIT_CEILING_DIRECTORIES=str(second))]
        return [build.result() for build in builds]


@pytest.fixture(scope="session")
def debs(debs_twice):
    return debs_twice[0]
