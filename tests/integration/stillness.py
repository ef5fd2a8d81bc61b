"""Repeats tests that failed while the machine stood still. A shared machine may run nothing for a moment, so that a test with a
timeout fails, which says nothing about the tested program. So a thread checks the clock all the time. A test that failed while
the machine stood still runs once more, and is listed at the end. It fails for good if it fails again, or if the machine did not
stand still."""

import threading
import time

import pytest
from _pytest.runner import runtestprotocol

LOOK_S = 0.01
STILL_S = 0.25  # a wake-up this late means that nothing could run; normal load on two cores delays it by about 0.05 s


class Stillness(threading.Thread):
    """Measures the longest time since begin() by which this process woke up too late."""

    def __init__(self):
        super().__init__(name="stillness", daemon=True)
        self.longest_s = 0.0

    def begin(self):
        self.longest_s = 0.0

    def run(self):
        before = time.monotonic()
        while True:
            time.sleep(LOOK_S)
            now = time.monotonic()
            self.longest_s = max(self.longest_s, now - before - LOOK_S)
            before = now


class Plugin:
    def __init__(self, stillness):
        self.stillness = stillness
        self.again = []

    def run_one(self, item, nextitem):
        self.stillness.begin()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        still_s = self.stillness.longest_s
        if still_s < STILL_S or not any(report.failed for report in reports):
            return reports
        self.again.append(f"{item.nodeid}: stood still for {still_s:.2f} s")
        # Resets the test, so that its fixtures are made again.
        item._initrequest()
        return runtestprotocol(item, nextitem=nextitem, log=False)

    def pytest_runtest_protocol(self, item, nextitem):
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self.run_one(item, nextitem):
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    # Each worker of pytest-xdist watches its own tests, and the controller lists all of them.
    def pytest_sessionfinish(self, session):
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["again"] = self.again

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        self.again += getattr(node, "workeroutput", {}).get("again", [])

    def pytest_terminal_summary(self, terminalreporter):
        if self.again:
            terminalreporter.section("run again")
            for line in self.again:
                terminalreporter.write_line(line)


def pytest_configure(config):
    if config.pluginmanager.hasplugin("stillness-plugin"):
        return  # the conftest.py of another test folder has done this
    stillness = Stillness()
    stillness.start()
    config.pluginmanager.register(Plugin(stillness), "stillness-plugin")
