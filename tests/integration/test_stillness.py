"""stillness.py: a failed test runs again only if the machine was stopped during it."""

import pathlib
import textwrap

import pytest

pytest_plugins = ["pytester"]
HERE = str(pathlib.Path(__file__).parent)

# To a process, a stopped machine looks like a stop of all its threads.
STOP = """
import os, signal, subprocess, time
def stand_still():
    subprocess.Popen(["sh", "-c", f"kill -STOP {os.getpid()}; sleep 0.6; kill -CONT {os.getpid()}"]).wait()
runs = []
"""


def results(pytester, code):
    """Runs the tests in `code` with the plugin `stillness`, in a process of its own."""
    pytester.makepyfile(STOP + textwrap.dedent(code))
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "stillness")


@pytest.fixture(autouse=True)
def path(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", HERE)


def test_a_failure_on_a_running_machine_counts(pytester):
    result = results(pytester, """
        def test_it():
            runs.append(1)
            assert len(runs) == 2
        """)
    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line("*run again*")


def test_a_failure_on_a_stopped_machine_is_retried_and_reported(pytester):
    result = results(pytester, """
        import pytest
        @pytest.fixture
        def number():
            runs.append(1)
            return len(runs)
        def test_it(number):
            if number == 1:
                stand_still()
            assert number == 2
        def test_the_next():
            assert len(runs) == 2
        """)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*run again*", "*::test_it: stood still for 0.*"])


def test_a_failure_is_retried_only_once(pytester):
    result = results(pytester, """
        def test_it():
            runs.append(1)
            stand_still()
            assert len(runs) == 3
        """)
    result.assert_outcomes(failed=1)


def test_a_passed_test_is_not_retried(pytester):
    result = results(pytester, """
        def test_it():
            runs.append(1)
            stand_still()
            assert len(runs) == 1
        """)
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*run again*")
