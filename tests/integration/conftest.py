"""Integration tests: allot's programs on a simulated GPU."""

from fixtures import browser, built, chromium, machine, machine2, pytest_configure, python  # noqa: F401
