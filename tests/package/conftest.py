"""Tests of what is installed: by meson, pip, dpkg and rpm. With a simulated machine as in tests/integration."""

import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "integration"))

from fixtures import built, machine2, pytest_configure  # noqa: E402, F401
from machines import BUILD  # noqa: E402
from packages import make_packages, run  # noqa: E402


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


@pytest.fixture(scope="session")
def debs(tmp_path_factory):
    if not pathlib.Path("/etc/debian_version").exists():
        pytest.skip("this is no Debian and no Ubuntu")
    return make_packages("deb", tmp_path_factory.mktemp("first"))
