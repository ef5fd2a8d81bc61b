"""Tests of what is installed: by meson, pip, dpkg and rpm. With a simulated machine as in tests/integration."""

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
    """Meson's tree of the build under test."""
    for place in (BUILD / "meson", BUILD.parent / "meson", BUILD):
        if (place / "build.ninja").exists():
            return place
    return pytest.skip(f"{BUILD}: no tree of meson's there; run scripts/build")


@pytest.fixture(scope="session")
def installed(tree, tmp_path_factory):
    """`meson install` there; what would be /usr/local."""
    at = tmp_path_factory.mktemp("installed")
    run("meson", "install", "-C", tree, "--no-rebuild", "--destdir", at)
    return at / "usr/local"


def copy_without_git(to):
    """A tree without git, as the source of a release is."""
    for path in run("git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        if path and (ROOT / path).exists():
            (to / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, to / path)
    return to


@pytest.fixture(scope="session")
def debs_twice(tmp_path_factory):
    """The packages as this tree makes them, and as a copy of it does elsewhere: both at once, since a package's last steps use
    one processor."""
    if not pathlib.Path("/etc/debian_version").exists():
        pytest.skip("this is no Debian and no Ubuntu")
    first, second = tmp_path_factory.mktemp("first"), tmp_path_factory.mktemp("second")
    other = copy_without_git(second / "another folder's depth/tree")
    run("sh", "-c", ". scripts/setup.sh; need_build_tools; need_deb_tools; install_needed", cwd=ROOT)
    with ThreadPoolExecutor() as both:
        builds = [both.submit(make_packages, "deb", first),
                  both.submit(make_packages, "deb", second / "at", tree=other, umask=0o027, TZ="Asia/Tokyo", LC_ALL="C",
                              HOME=str(second), GIT_CEILING_DIRECTORIES=str(second))]
        return [build.result() for build in builds]


@pytest.fixture(scope="session")
def debs(debs_twice):
    return debs_twice[0]
