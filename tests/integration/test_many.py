"""The cost of monitoring: 200 tenants on eight GPUs, one working tenant per GPU, are read four times a second. The limits are
counters, and comparisons with other commands of the same run. CPU use is only printed, as it depends on the machine."""

import os
import re
import subprocess
import time

import pytest

pytest.importorskip("pyte")

from chromium import Chromium, find_chromium  # noqa: E402
from machines import BUILD, make_machine, wait_until  # noqa: E402
from page import READ, Page  # noqa: E402
from page_cost import STATES, Watch, count_changes, measure  # noqa: E402
from terminal import Terminal  # noqa: E402

TENANTS = 200
SECONDS = float(os.environ.get("ALLOT_MANY_SECONDS", 5))
COLUMNS, LINES = 120, 50


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """(machine, page): a machine with eight GPUs and 200 tenants that all have a process, and its daemon's page."""
    machine = make_machine(tmp_path_factory, "h200x8")
    try:
        page = Page(machine, tmp_path_factory.mktemp("page"), card="[gpu]\n" * 7)
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
    """Processor time of one `allot ps --json`, which requests the same list."""
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
    samples = seconds * 4
    print(f"allot top: {100 * used_s / seconds:.2f} % of a core, {len(written) / samples:.0f} bytes a sample; "
          f"allot ps --json: {1000 * ps_s(machine):.1f} ms each")
    # No flicker: nothing is cleared and drawn again, only changes are written.
    assert not re.search(rb"\x1b\[[0-3]?J|\x1bc", written)
    assert 0 < len(written) < samples * COLUMNS * LINES
    # Although it updates a terminal, a sample costs less than the command that prints the list once.
    assert used_s / samples < ps_s(machine)


def test_page(crowd):
    """The daemon's part of the cost: the extra processor time of its main thread while a page is read."""
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
    assert states / seconds < 5
    assert more / 4 < ps_s(machine)


# A browser's least work for any page that changes four times a second: it draws one number.
LEAST_PAGE = """data:text/html,<!doctype html><p id=n>0</p><script>let n = 0; setInterval(() => {
  n++; document.getElementById('n').firstChild.data = String(n);
  document.documentElement.dataset.states = n; }, 250)</script>"""


@pytest.mark.skipif(not find_chromium(), reason="no Chromium here")
def test_page_in_a_browser(crowd, tmp_path):
    """The page does not write or draw again the contents that it shows already. So the cost of a state of 200
    tenants is a small multiple of the cost of one number, and not proportional to the number of tenants."""
    _, page = crowd
    browser = Chromium(tmp_path)
    try:
        least = measure(browser, open_page(browser, LEAST_PAGE, 20), "a page with one number", SECONDS)
        browser.close_tabs()
        tab = browser.open(page.url, domains=["Runtime"])
        tab.wait("document.querySelector('#token-dialog').open")
        tab.type(READ)
        tab.press("Enter")
        # Wait until the script is compiled for speed and the garbage of its start is collected: the steady state is measured.
        tab.wait(f"{STATES} >= 80", seconds=120)
        assert tab.run("document.querySelectorAll('#tenant-table tbody tr').length") == TENANTS
        each = measure(browser, tab, "the page", SECONDS)
        own = {name: f"{each[name] - least[name]:.2f} % of a core" for name in ("all_pct", "main_pct")}
        print(f"the page's own part, without the cost of the one number: {own}")
        done, states = count_changes(tab, SECONDS)
        assert states > 2
        # Figures that change with every state are drawn once, where they are in view: the GPUs and the first rows. Of the
        # 1,400 figures of the rows hardly one needs a new layout or style, and no element is removed and built again.
        assert each["LayoutCount"] < 0.5 and each["RecalcStyleCount"] < 0.5
        assert done["texts"] < states and done["nodes"] <= 1
        assert 0 < done["boards"] <= 3 * states + 3
        assert each["TaskDuration"] < 8 * least["TaskDuration"]
        # The timelines are further down: none is drawn until it is scrolled into view.
        assert done["draws"] == 0
        tab.run("document.querySelector('#leases').scrollIntoView()")
        tab.wait("window.done.draws > 0")
        assert tab.complaints() == [] or all("401" in str(told) for told in tab.complaints())
    finally:
        browser.close()


def open_page(browser, url, states):
    """A tab with the page, which has received at least so many states."""
    tab = browser.open(url, domains=["Runtime"])
    tab.wait(f"{STATES} >= {states}")
    return tab
