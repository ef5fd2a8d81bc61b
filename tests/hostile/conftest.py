"""Tests that attack allot, with the modules and fixtures of tests/integration."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "integration"))

from fixtures import built, machine, machine2, pytest_configure, python  # noqa: E402, F401
