"""Fixtures for tests on a simulated machine. The conftest.py of a folder imports `pytest_configure`, `built` and the fixtures
that its tests use."""

import signal
import sys

import pytest

import stillness
from chromium import Chromium
from machines import BUILD, make_machine

# A background job, or nohup, ignores these signals, and every program under test would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_configure(config):
    stillness.pytest_configure(config)
    config.addinivalue_line("markers", "alone: no other test may run at the same time, because it measures shares of the GPU, "
                                       "or times")


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    chromium = Chromium(tmp_path_factory.mktemp("chromium"))
    yield chromium
    chromium.close()


@pytest.fixture
def browser(chromium):
    yield chromium
    chromium.close_tabs()


@pytest.fixture(scope="session", autouse=True)
def built():
    for name in ("allot", "allotd", "allot-sim", "allot-load", "liballot.so", "sim/libcuda.so.1"):
        if not (BUILD / name).exists():
            pytest.exit(f"{BUILD / name} is missing; run scripts/build", returncode=3)


@pytest.fixture
def machine(tmp_path_factory):
    """One simulated H200."""
    machine = make_machine(tmp_path_factory, "h200")
    yield machine
    machine.clean()


@pytest.fixture
def machine2(tmp_path_factory):
    """Two simulated H200."""
    machine = make_machine(tmp_path_factory, "h200x2")
    yield machine
    machine.clean()


@pytest.fixture
def python():
    """This interpreter, which has cuda-bindings and nvidia-ml-py."""
    return sys.executable
