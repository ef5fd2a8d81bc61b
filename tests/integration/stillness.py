"""Repeats tests that failed only because the machine stood still. A shared machine may stand still for a moment, so that a test
with a timeout fails, which says nothing about the tested program. So a thread watches the clock all the time. A test that
failed while the machine stood still runs once more, and is named at the end. It fails for good if it fails again, or if the
machine did not stand still."""

import threading
import time

import pytest
from _pytest.runner import runtestprotocol

LOOK_S = 0.01
STILL_S = 0.25  # so late a look means that nothing could run: two cores' own load makes some 0.05 s


class Stillness(threading.Thread):
    """The longest time, since begin(), in which this process did not run though it had asked to."""

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
        # As a test that was not run yet: function fixtures are made anew.
        item._initrequest()
        return runtestprotocol(item, nextitem=nextitem, log=False)

    def pytest_runtest_protocol(self, item, nextitem):
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self.run_one(item, nextitem):
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    # Of several workers (pytest-xdist) each looks at its own tests; all are named by who started them.
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
        return  # two folders of tests at once: the other's conftest did it
    stillness = Stillness()
    stillness.start()
    config.pluginmanager.register(Plugin(stillness), "stillness-plugin")
