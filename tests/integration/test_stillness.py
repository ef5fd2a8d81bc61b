"""stillness.py: a failed test runs again only if the machine stood still meanwhile."""

import pathlib
import textwrap

import pytest

pytest_plugins = ["pytester"]
HERE = str(pathlib.Path(__file__).parent)

# A stop of all threads of the process is what a machine that stands still looks like from within.
STOP = """
import os, signal, subprocess, time
def stand_still():
    subprocess.Popen(["sh", "-c", f"kill -STOP {os.getpid()}; sleep 0.6; kill -CONT {os.getpid()}"]).wait()
runs = []
"""


def results(pytester, code):
    pytester.makepyfile(STOP + textwrap.dedent(code))
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "stillness")


@pytest.fixture(autouse=True)
def path(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", HERE)


def test_what_fails_while_the_machine_goes_on_fails(pytester):
    result = results(pytester, """
        def test_it():
            runs.append(1)
            assert len(runs) == 2
        """)
    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line("*run again*")


def test_what_fails_while_it_stands_still_is_run_again_and_named(pytester):
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


def test_once(pytester):
    result = results(pytester, """
        def test_it():
            runs.append(1)
            stand_still()
            assert len(runs) == 3
        """)
    result.assert_outcomes(failed=1)


def test_what_passes_is_not_run_again(pytester):
    result = results(pytester, """
        def test_it():
            runs.append(1)
            stand_still()
            assert len(runs) == 1
        """)
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*run again*")
