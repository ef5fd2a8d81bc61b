"""What looking costs: 200 tenants on eight cards, of which one on each works, at four looks a second. Bars by counters and against other
commands of the same run; percent of a core are printed, as this machine has them."""

import os
import pathlib
import re
import subprocess
import time

import pytest

pytest.importorskip("pyte")

from chromium import Chromium, find_chromium  # noqa: E402
from conftest import BUILD, make_machine, wait_until  # noqa: E402
from page import READ, Page  # noqa: E402
from terminal import Terminal  # noqa: E402

TENANTS = 200
SECONDS = float(os.environ.get("ALLOT_MANY_SECONDS", 5))
COLUMNS, LINES = 120, 50


def cpu_s(pid, tid=None):
    """Of its threads, or of one."""
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir() if tid is None else [pathlib.Path(f"/proc/{pid}/task/{tid}")]
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


class Watch:
    """Processor time and time, from one look to the next."""

    def __init__(self, *who):
        self.who, self.begun, self.before = who, time.monotonic(), cpu_s(*who)

    def end(self):
        """(seconds of a processor, seconds)"""
        return cpu_s(*self.who) - self.before, time.monotonic() - self.begun


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    machine = make_machine(tmp_path_factory, "h200x8")
    try:
        page = Page(machine, tmp_path_factory.mktemp("page"), card="[card]\n" * 7)
        for i in range(TENANTS):
            period_ms = 100 if i < 8 else 600_000
            machine.start("--name", f"tenant-{i:03}", "--gpu", i % 8, "--memory", "4GiB", "--cores", 3, "--",
                          *machine.load("--iters", 100, "--kernel-us", 1000, "--burst", 1, "--period-ms", period_ms,
                                        "--seconds", 900, "--report-every", 0))
        wait_until(lambda: time.sleep(1) or sum(bool(tenant["processes"]) for tenant in machine.tenants().values()) == TENANTS,
                   seconds=200, what="200 tenants with a process each")
        yield machine, page
    finally:
        machine.clean()


def ps_s(machine):
    """Processor time of one `allot ps --json`, which asks for the same list."""
    before = os.times()
    for _ in range(5):
        subprocess.run([BUILD / "allot", "ps", "--json", *machine.sim], env=machine.environment, check=True,
                       stdout=subprocess.DEVNULL)
    after = os.times()
    return (after.children_user + after.children_system - before.children_user - before.children_system) / 5


def test_top(crowd):
    machine, _ = crowd
    terminal = Terminal(machine, "--interval", "0.25", columns=COLUMNS, lines=LINES)
    try:
        terminal.wait_for_text("200 tenants")
        time.sleep(2)
        with terminal.lock:
            first = len(terminal.raw)
        watch = Watch(terminal.process.pid)
        time.sleep(SECONDS)
        used_s, seconds = watch.end()
        with terminal.lock:
            written = terminal.raw[first:]
    finally:
        terminal.close()
    looks = seconds * 4
    print(f"allot top: {100 * used_s / seconds:.2f} % of a core, {len(written) / looks:.0f} bytes a look; "
          f"allot ps --json: {1000 * ps_s(machine):.1f} ms each")
    # No flicker: nothing is cleared and drawn anew, only what changed is written.
    assert not re.search(rb"\x1b\[[0-3]?J|\x1bc", written)
    assert 0 < len(written) < looks * COLUMNS * LINES
    # With a terminal to keep up, a look costs less than the command that shows a list once.
    assert used_s / looks < ps_s(machine)


def test_page(crowd):
    """The daemon's part of it: all of what its main thread does more with a reader than without."""
    machine, page = crowd
    daemon, = machine.daemons()
    watch = Watch(daemon, daemon)
    time.sleep(SECONDS)
    used_s, seconds = watch.end()
    without = used_s / seconds
    events = page.events()
    assert events.begin() == 200
    assert len(events.next()["tenants"]) == TENANTS
    watch = Watch(daemon, daemon)
    states = 0
    while time.monotonic() - watch.begun < SECONDS:
        assert events.next()
        states += 1
    used_s, seconds = watch.end()
    events.close()
    more = used_s / seconds - without
    print(f"the daemon for the page: {100 * more:.2f} % of a core, at {states / seconds:.1f} states a second")
    assert 2 < states / seconds < 5
    assert more / 4 < ps_s(machine)


@pytest.mark.skipif(not find_chromium(), reason="no Chromium here")
def test_page_in_a_browser(crowd, tmp_path):
    """The browser's part: what its main thread does at each state; all of them are shown."""
    _, page = crowd
    browser = Chromium(tmp_path)
    try:
        tab = browser.open(page.url)
        tab.wait("document.querySelector('#token-dialog').open")
        tab.type(READ)
        tab.press("Enter")
        tab.wait("Number(document.documentElement.dataset.states) >= 8", seconds=120)
        tab.command("Performance.enable", timeDomain="threadTicks")

        def figures():
            told = {one["name"]: one["value"] for one in tab.command("Performance.getMetrics")["metrics"]}
            states = tab.run("Number(document.documentElement.dataset.states)")
            return told, states, time.monotonic(), tab.run("document.getElementsByTagName('*').length")

        before, seen, begun, nodes = figures()
        time.sleep(SECONDS)
        after, then, ended, nodes_then = figures()
        used = {name: after[name] - before[name] for name in ("TaskDuration", "ScriptDuration", "LayoutDuration",
                                                              "RecalcStyleDuration")}
        each = {name: f"{1000 * value / (then - seen):.1f}" for name, value in used.items()}
        print(f"the browser for the page: {100 * used['TaskDuration'] / (ended - begun):.2f} % of a core at "
              f"{(then - seen) / (ended - begun):.1f} states a second; ms a state: {each}; {nodes} elements")
        assert then > seen
        # Nothing is torn down and built anew, nothing grows.
        assert abs(nodes_then - nodes) < nodes / 10
        assert tab.complaints() == [] or all("401" in str(told) for told in tab.complaints())
    finally:
        browser.close()
