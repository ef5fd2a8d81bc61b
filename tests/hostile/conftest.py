"""Tests that attack allot, with the fixtures of tests/integration: a daemon on a simulated GPU in a run
directory of the test's own."""

import importlib.util
import pathlib
import sys

INTEGRATION = pathlib.Path(__file__).resolve().parent.parent / "integration"
sys.path.append(str(INTEGRATION))

# Two modules can't both be named conftest, so the other one is loaded under another name and its
# names, fixtures and hooks are made this module's.
_spec = importlib.util.spec_from_file_location("integration_conftest", INTEGRATION / "conftest.py")
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
globals().update({name: value for name, value in vars(_module).items() if not name.startswith("__")})
