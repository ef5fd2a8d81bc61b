"""The daemon's web page in a real Chromium. It follows the daemon's changes, changes tenants by mouse and by keyboard, and
requests nothing from other machines. ALLOT_SCREENSHOTS=DIR saves pictures for the documentation."""

import json
import os
import pathlib
import re
import signal
import time

import pytest

from chromium import find_chromium
from machines import BUILD, GIB
from page import CHANGE, READ, Page, hold_tenants
from servers import start

pytestmark = pytest.mark.skipif(not find_chromium(), reason="no Chromium that starts without a snap: scripts/test "
                                "installs Debian's package; Ubuntu's is a snap")
LOAD_MAX = 200 << 10
TAB = "Tab"

# The texts whose contrast with their background is less than 4.5 (WCAG 2.1, AA).
CONTRAST = """(() => {
  const part = (v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const rgb = (text) => text.match(/[0-9.]+/g).map(Number);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const bad = [];
  for (const e of document.querySelectorAll('body *')) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility() || e.closest('svg')) continue;
    const [a, b] = [light(rgb(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) bad.push([e.outerHTML.slice(0, 80), (a + 0.05) / (b + 0.05)]);
  }
  return JSON.stringify(bad);
})()"""


@pytest.fixture
def page(machine, tmp_path):
    return Page(machine, tmp_path)


def open_page(browser, page, token=CHANGE, **more):
    """A tab in which the token was typed, and that has received two states."""
    tab = browser.open(page.url, **more)
    tab.wait("document.querySelector('#token-dialog').open")
    tab.type(token)
    tab.press("Enter")
    tab.wait("Number(document.documentElement.dataset.states) >= 2")
    return tab


def assert_no_errors_or_foreign_requests(tab, page):
    """Errors with status 401 are those before the token is typed."""
    assert tab.complaints() == [] or all("401" in str(entry) for entry in tab.complaints()), tab.complaints()
    assert tab.requests() and all(url.startswith(page.url) for url in tab.requests()), set(tab.requests())


def start_load(machine, name, *terms, kernel_us=1000, load=()):
    """Starts a tenant of that name with a load; returns once it has memory of the GPU."""
    tenant = machine.start("--name", name, *terms, "--",
                           *machine.load("--seconds", 120, "--kernel-us", kernel_us, *load))
    machine.wait_for_tenant(name, lambda t: t["devices"][0]["memory_used_bytes"])
    return tenant


def cell(name, column):
    """JavaScript for a cell of a tenant's row: its text, or the label that a screen reader gets for a drawing."""
    return ("(c => c?.querySelector('.drawing')?.ariaLabel ?? c?.textContent)("
            "[...document.querySelectorAll('#tenant-table tbody tr')]"
            f".find(r => r.cells[0].textContent.endsWith({json.dumps(name)}))?.cells[{column}])")


def test_values_are_updated_live(browser, machine, page):
    start_load(machine, "able", "--memory", "8GiB", "--cores", "60", load=("--sync-every", 5))
    tab = open_page(browser, page, token=READ)
    tab.wait(f"/^[^0]/.test({cell('able', 3)} ?? '0')")
    # A tenant starts, works, and ends; the figures change without a click.
    before = tab.run(cell("able", 6))
    baker = start_load(machine, "baker", "--memory", "4GiB", "--cores", "30")
    tab.wait(f"{cell('baker', 1)} && {cell('able', 6)} !== {json.dumps(before)}")
    # "able" synchronizes now and then, "baker" never does.
    tab.wait(f"/^[0-9.]+ ms, [0-9.]+ ms, [0-9.]+.s$/.test({cell('able', 5)}) && {cell('baker', 5)} === '–'")
    tab.wait("document.querySelectorAll('#legend li').length === 2")
    assert "1 GPU, 2 tenants" in tab.wait("document.querySelector('#summary').textContent.includes('2 tenants') && "
                                          "document.querySelector('#summary').textContent")
    # A folded table is filled when it is opened.
    assert tab.run("document.querySelectorAll('#lease-table tbody tr').length") == 0
    tab.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    tab.wait("document.querySelectorAll('#lease-table tbody tr').length === 2")
    tab.wait("document.querySelectorAll('#chart-table tbody tr').length === 2")
    tab.run("document.querySelector('#legend').scrollIntoView()")
    # Both charts have lines, and the topology names the tenants of the GPU, also for a screen reader.
    tab.wait("document.querySelectorAll('.uplot canvas').length === 2")
    tab.wait("[...document.querySelectorAll('.chip title')].map(t => t.textContent).sort().join() === 'able,baker'")
    assert tab.run("document.querySelector('#topology svg').getAttribute('role')") == "img"
    assert "able, baker" in tab.run("document.querySelector('#topology-text').textContent")
    # A reader without the right to change gets no buttons.
    assert tab.run("[...document.querySelectorAll('#tenant-table td button')].every(b => !b.checkVisibility())")
    baker.terminate()
    tab.wait("document.querySelectorAll('#tenant-table tbody tr').length === 1")
    assert_no_errors_or_foreign_requests(tab, page)


# Whether the canvas over a list has something in the place of each drawing, and how many distinct pictures eight samples show.
DRAWN = """(async (list) => {
  const board = document.querySelector(`${list} > .board`);
  const part = (place) => {
    const [a, b] = [place, board].map((e) => e.getBoundingClientRect());
    const scale = board.width / b.width;
    const [x, y] = [(a.x - b.x) * scale, (a.y - b.y) * scale];
    return board.getContext("2d").getImageData(x, y, a.width * scale, a.height * scale).data;
  };
  const places = [...document.querySelectorAll(`${list} .drawing`)];
  const isFilled = places.length > 0 && places.every((place) => place.ariaLabel && part(place).some((value) => value));
  const seen = new Set();
  for (let i = 0; i < 8; i++) {
    await new Promise((resolve) => setTimeout(resolve, 250));
    seen.add(places.map((place) => part(place).join()).join());
  }
  return {isFilled, pictures: seen.size, labels: places.map((place) => place.ariaLabel)};
})"""


def test_drawings_are_in_their_places(browser, machine, page):
    """Each GPU and tenant has its drawings in their places, in both themes and at another size; changes are drawn again."""
    start_load(machine, "able", "--memory", "8GiB", "--cores", "60")
    tab = open_page(browser, page)
    tab.wait(f"{cell('able', 1)}")
    for scheme, width, scale in (("light", 1280, 1), ("dark", 800, 2)):
        tab.prefer(scheme)
        tab.command("Emulation.setDeviceMetricsOverride", width=width, height=1000, deviceScaleFactor=scale, mobile=False)
        time.sleep(1)
        for part, places in (("#cards", 1), ("#tenant-table tbody", 4)):
            drawn = tab.run(f"{DRAWN}({json.dumps(part)})")
            assert drawn["isFilled"] and len(drawn["labels"]) == places, (part, drawn)
            # The picture of a GPU whose tenants are at their limits may not change for seconds.
            assert drawn["pictures"] > 1 or part == "#cards", drawn
            assert tab.run(f"(b => b.width / b.clientWidth)(document.querySelector('{part} > .board'))") == \
                pytest.approx(scale, rel=0.01)
            # Painted text has the size of the text around it.
            painted = tab.run(f"document.querySelector('{part} > .board').getContext('2d').font.match(/([\\d.]+)px/)[1]")
            styled = tab.run(f"getComputedStyle(document.querySelector('{part} .drawing')).fontSize")
            assert float(painted) == pytest.approx(float(styled[:-2]), rel=0.02), (painted, styled)
    # A canvas out of view is released.
    tab.run("document.querySelector('footer').scrollIntoView()")
    tab.wait("document.querySelector('#cards > .board').width === 0")
    tab.run("scrollTo(0, 0)")
    tab.wait("document.querySelector('#cards > .board').width > 0")
    # This test reads canvases back, which makes Chromium warn.
    assert all("401" in str(entry) or "readback" in str(entry) for entry in tab.complaints()), tab.complaints()


def test_the_page_loads_few_bytes_and_soon(browser, machine, page):
    start_load(machine, "able", "--memory", "8GiB", "--cores", "60")
    tab = open_page(browser, page)
    tab.command("Page.reload")
    before = len(tab.heard("Network.requestWillBeSent"))
    loaded = tab.loaded_bytes()
    tab.wait("performance.timing.loadEventEnd > 0 && Number(document.documentElement.dataset.states) >= 1")
    assert 0 < tab.loaded_bytes() - loaded < LOAD_MAX
    assert len(tab.heard("Network.requestWillBeSent")) > before
    print(f"load: {tab.loaded_bytes() - loaded} bytes")
    # An idle machine needs a tenth of a second; here other programs may have the processors.
    painted_ms, shown_ms = tab.load_times_ms()
    print(f"load: something to see after {painted_ms:.0f} ms, live values after {shown_ms:.0f} ms")
    assert painted_ms < 10000 and shown_ms < 10000
    assert_no_errors_or_foreign_requests(tab, page)


def test_rows_are_moved_and_not_rebuilt(browser, machine, page):
    """No flicker: rows are moved, also to another group of rows, and their figures changed; no row is built again."""
    names = [f"t{i:02}" for i in range(23)]
    with hold_tenants(machine, [(name, 0, GIB) for name in names]):
        tab = open_page(browser, page, token=READ)
        shown = "[...document.querySelectorAll('#tenant-table tbody tr')].map(r => r.cells[0].lastChild.data)"
        tab.wait(f"{shown}.join() === '{','.join(names)}'")
        assert tab.run("[...document.querySelectorAll('#tenant-table tbody')].map(g => g.rows.length)") == [10, 10, 3]
        tab.run("document.querySelectorAll('#tenant-table tbody tr').forEach(r => r.wasThere = true)")
        for title, order in (("Tenant", names[::-1]), ("Priority", names[::-1]), ("Tenant", names), ("Tenant", names[::-1])):
            tab.run(f"[...document.querySelectorAll('#tenant-table th button')].find(b => b.textContent === '{title}').click()")
            assert tab.run(shown) == order
        tab.run("(() => { const f = document.querySelector('#filter'); f.value = 't1'; "
                "f.dispatchEvent(new Event('input')); })()")
        assert tab.run(shown) == names[19:9:-1]
        tab.run("(() => { const f = document.querySelector('#filter'); f.value = ''; f.dispatchEvent(new Event('input')); })()")
        assert tab.run(shown) == names[::-1]
        tab.wait(f"Number(document.documentElement.dataset.states) >= {tab.run('document.documentElement.dataset.states')} + 3")
        assert tab.run("[...document.querySelectorAll('#tenant-table tbody tr')].filter(r => r.wasThere).length") == 23
    tab.wait("document.querySelectorAll('#tenant-table tbody').length === 0")
    assert_no_errors_or_foreign_requests(tab, page)


def test_quotas_are_changed_and_tenants_paused(browser, machine, page):
    start_load(machine, "able", "--memory", "8GiB", "--cores", "60")
    tab = open_page(browser, page)
    tab.wait("document.querySelector('button[aria-label=\"Change able\"]')?.checkVisibility()")
    tab.run("document.querySelector('button[aria-label=\"Change able\"]').click()")
    tab.wait("document.querySelector('#set-dialog').open")
    assert tab.run("[...document.querySelectorAll('#set-devices input')].map(i => i.value).join()") == "8,60,60"
    # An impossible quota is refused with the daemon's message, and the dialog remains open.
    tab.run("(() => { const i = document.querySelectorAll('#set-devices input'); "
            "i[0].value = 6; i[1].value = 40; i[2].value = 20; })()")
    tab.run("document.querySelector('#set-dialog button[type=submit]').click()")
    tab.wait("document.querySelector('#set-error').textContent.includes('cores_limit_pct')")
    assert machine.tenants()["able"]["devices"][0]["memory_quota_bytes"] == 8 * GIB
    tab.run("document.querySelectorAll('#set-devices input')[2].value = 40")
    tab.run("document.querySelector('#set-dialog button[type=submit]').click()")
    tab.wait("!document.querySelector('#set-dialog').open")
    device = machine.tenants()["able"]["devices"][0]
    assert (device["memory_quota_bytes"], device["cores_pct"], device["cores_limit_pct"]) == (6 * GIB, 40, 40)
    tab.wait(f"{cell('able', 4)}.endsWith('of 6.0 GiB') && {cell('able', 3)}.endsWith('of 40 %')")
    tab.run("document.querySelector('button[aria-label=\"Pause able\"]').click()")
    tab.wait(f"{cell('able', 1)}.includes('paused')")
    tab.wait("document.querySelector('#summary').textContent.includes('1 paused')")
    tab.wait("Boolean(document.querySelector('button[aria-label=\"Resume able\"]'))")
    tab.run("document.querySelector('button[aria-label=\"Resume able\"]').click()")
    tab.wait(f"!{cell('able', 1)}.includes('paused')")
    # The browser's console reports the refusal, and no other error.
    assert all("400" in str(entry) or "401" in str(entry) for entry in tab.complaints()), tab.complaints()


def test_a_queued_tenant_is_shown_until_it_goes_on(browser, machine, page):
    first = start_load(machine, "first", "--memory", "100GiB", "--on-full", "wait")
    tab = open_page(browser, page)
    tab.wait("!document.querySelector('#waiting-none').hidden")
    machine.start("--name", "second", "--memory", "90GiB", "--on-full", "wait", "--", *machine.load("--seconds", 120))
    text = tab.wait("document.querySelector('#waiting li')?.textContent")
    assert re.search(r"second number 1 in line, for [0-9.]+ s: needs 90.0 GiB of GPU 0, of which [0-9.]+ GiB can be granted; "
                     r"held by first 100 GiB$", text), text
    tab.wait("document.querySelector('#waiting li').textContent !== " + json.dumps(text))
    tab.wait(f"{cell('second', 1)}.includes('queued')")
    first.terminate()
    tab.wait("!document.querySelector('#waiting li') && !document.querySelector('#waiting-none').hidden")
    tab.wait(f"/running|idle/.test({cell('second', 1)})")
    assert_no_errors_or_foreign_requests(tab, page)


def test_swapped_memory_is_shown_until_it_is_back(browser, machine, page):
    """The page shows a tenant that is paused and swapped out as allot ps does, until its memory is back on the GPU."""
    start_load(machine, "able", "--memory", "8GiB", "--on-full", "swap", load=("--mib", 1536))
    machine.wait_for_tenant("able", lambda t: t["swap"] and t["swap"]["swappable_bytes"])
    tab = open_page(browser, page)
    tab.wait("!document.querySelector('#moved-none').hidden")
    assert machine.allot("pause", "able", "--swap-out", *machine.sim).returncode == 0
    swapped = machine.wait_for_tenant("able", lambda t: t["swap"]["state"] == "out")
    text = tab.wait("document.querySelector('#moved li')?.textContent.includes('GiB, off the GPU') && "
                    "document.querySelector('#moved li').textContent")
    amount = f"{swapped['swap']['swapped_bytes'] / GIB:.1f} GiB"
    assert f"able {amount}, off the GPU" in text, text
    tab.wait(f"{cell('able', 1)}.includes('swapped')")
    tab.wait(f"{cell('able', 4)}.endsWith('{amount} off the GPU')")
    tab.wait("document.querySelector('#summary').textContent.includes('1 swapped')")
    assert machine.allot("resume", "able", *machine.sim).returncode == 0
    tab.wait("!document.querySelector('#moved li') && !document.querySelector('#moved-none').hidden")
    tab.wait(f"!{cell('able', 4)}.includes('off the GPU') && /running|idle|waiting/.test({cell('able', 1)})")
    assert tab.run("document.querySelector('#frozen-section').hidden"), "a frozen tenant is shown"
    assert_no_errors_or_foreign_requests(tab, page)


def test_empty_lists_are_explained(browser, machine, page):
    """Without a state the page states nothing about tenants. With an empty one it reports that there are none, and explains how
    to start one."""
    empty = ("[...document.querySelectorAll('#tenants-none, #waiting-none, #moved-none')]"
             ".filter(p => !p.hidden).map(p => p.id).join()")
    tab = browser.open(page.url)
    tab.wait("document.querySelector('#token-dialog').open")
    assert tab.run(empty) == ""
    tab.type(CHANGE)
    tab.press("Enter")
    tab.wait(f"{empty} === 'waiting-none,moved-none,tenants-none'")
    assert "allot run -- COMMAND" in tab.run("document.querySelector('#tenants-none').textContent")
    start_load(machine, "able", "--memory", "8GiB")
    tab.wait("document.querySelector('#tenants-none').hidden")
    tab.run("document.querySelector('#filter').value = 'other', "
            "document.querySelector('#filter').dispatchEvent(new Event('input'))")
    tab.wait("document.querySelector('#tenants-none').checkVisibility() && "
             "document.querySelector('#tenants-none').textContent === 'No tenant matches the filter.'")
    # Each state that a tenant can have is explained.
    assert tab.run("document.querySelectorAll('#states dt').length") == 10
    assert_no_errors_or_foreign_requests(tab, page)


def test_a_refused_change_shows_its_reason(browser, machine, page):
    """The reason remains until the next change, even while new states arrive."""
    start_load(machine, "able", "--memory", "8GiB")
    tab = open_page(browser, page)
    tab.wait(f"{cell('able', 1)}")
    tab.run("globalThis.realFetch = fetch, globalThis.fetch = (path, more) => path === '/api/pause' ? "
            "Promise.resolve(new Response('{\"ok\":false,\"error\":\"able: not now\"}')) : realFetch(path, more)")
    press = "[...document.querySelectorAll('#tenant-table button')].find(b => b.ariaLabel === 'Pause able').click()"
    tab.run(press)
    tab.wait("document.querySelector('#act-error').textContent === 'able: not now'")
    seen = tab.run("document.documentElement.dataset.states")
    tab.wait(f"Number(document.documentElement.dataset.states) > {seen} + 2")
    assert tab.run("document.querySelector('#act-error').checkVisibility()")
    tab.run("globalThis.fetch = realFetch, 0")
    tab.run(press)
    tab.wait(f"{cell('able', 1)}.includes('paused') && !document.querySelector('#act-error').checkVisibility()")


def test_a_wrong_token_is_reported_and_replaced(browser, page):
    tab = browser.open(page.url)
    tab.wait("document.querySelector('#token-dialog').open")
    assert tab.run("document.querySelector('#connection').textContent") == "This page needs a token: choose Token."
    tab.type("not-the-daemons-token")
    tab.press("Enter")
    tab.wait("document.querySelector('#token-error').textContent.includes('not the daemon')")
    assert tab.run("document.activeElement.id") == "token"
    tab.type(READ)
    tab.press("Enter")
    tab.wait("/^live, .*, read only$/.test(document.querySelector('#connection').textContent)")
    # The token is stored for this tab only, and in no cookie.
    assert tab.run("document.cookie + '|' + localStorage.getItem('allot-token')") == "|null"


def test_quotas_are_changed_by_keyboard(browser, machine, page):
    """All steps to a changed quota work by keyboard, and each control on the way has a name."""
    for name in ("able", "baker"):
        start_load(machine, name, "--memory", "8GiB", "--cores", "40")
    tab = open_page(browser, page)
    tab.wait("document.querySelectorAll('#tenant-table tbody tr').length === 2")
    tab.run("document.activeElement.blur()")
    tab.press("/")
    assert tab.run("document.activeElement.id") == "filter"
    tab.type("bak")
    tab.wait("document.querySelectorAll('#tenant-table tbody tr').length === 1")
    names = []
    for _ in range(30):
        tab.press(TAB)
        names.append(tab.run("document.activeElement.ariaLabel || document.activeElement.textContent"))
        if names[-1] == "Change baker":
            break
    assert names[-1] == "Change baker" and names[-2] == "Pause baker" and all(names), names
    tab.press("Enter")
    tab.wait("document.querySelector('#set-dialog').open")
    assert tab.run("document.querySelector('#set-dialog').contains(document.activeElement)")
    tab.run("document.activeElement.select()")
    tab.type("5")
    tab.press("Enter")
    tab.wait("!document.querySelector('#set-dialog').open")
    assert machine.tenants()["baker"]["devices"][0]["memory_quota_bytes"] == 5 * GIB
    assert tab.run("document.activeElement.ariaLabel") == "Change baker", "the focus did not return"
    # Escape closes the dialog; then a letter is a shortcut again.
    tab.press("Enter")
    tab.wait("document.querySelector('#set-dialog').open")
    tab.press("Escape")
    tab.wait("!document.querySelector('#set-dialog').open")
    before = tab.run("document.documentElement.dataset.theme")
    tab.press("t")
    assert tab.run("document.documentElement.dataset.theme") != before
    assert_no_errors_or_foreign_requests(tab, page)


def test_every_control_and_picture_has_a_name(browser, machine, page):
    """Checked by the browser's accessibility tree."""
    start_load(machine, "able", "--memory", "8GiB", "--cores", "40")
    tab = open_page(browser, page)
    tab.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    tab.wait("document.querySelectorAll('#lease-table tbody tr').length === 1")
    nodes = tab.command("Accessibility.getFullAXTree")["nodes"]
    roles = {}
    for node in nodes:
        if node.get("ignored"):
            continue
        role, name = node["role"]["value"], node.get("name", {}).get("value", "")
        roles.setdefault(role, []).append(name)
    for role in ("button", "textbox", "searchbox", "combobox", "img", "region", "link", "columnheader", "rowheader", "heading"):
        assert all(roles.get(role, [])), (role, roles.get(role))
    assert {"GPUs", "Tenants", "Waiting for memory", "The last ten minutes", "Tenants on each GPU"} <= set(roles["heading"])
    assert len(roles["table"]) == 4 and "status" in roles and "main" in roles and "banner" in roles
    assert roles["searchbox"] == ["Filter"] and "GPU" in roles["combobox"]
    # The header of the sorted column states the order.
    tab.run("[...document.querySelectorAll('#tenant-table th button')].find(b => b.textContent === 'Memory').click()")
    memory = "[...document.querySelectorAll('#tenant-table th')].find(h => h.textContent === 'Memory')"
    assert tab.run(f"{memory}.ariaSort") == "descending"


def test_text_has_enough_contrast_in_both_themes(browser, machine, page):
    """The contrast of text with its background is at least 4.5 (WCAG 2.1, AA) in both themes; the chosen theme is stored."""
    start_load(machine, "able", "--memory", "8GiB", "--cores", "40")
    tab = open_page(browser, page)
    for scheme in ("light", "dark"):
        tab.prefer(scheme)
        tab.wait(f"document.documentElement.dataset.theme === '{scheme}'")
        assert json.loads(tab.run(CONTRAST)) == [], scheme
    tab.run("document.querySelector('#theme').click()")
    tab.run("document.querySelector('#theme').click()")
    assert tab.run("document.documentElement.dataset.theme + document.querySelector('#theme').textContent") == \
        "lightTheme: light"
    tab.command("Page.reload")
    tab.wait("Number(document.documentElement.dataset.states) >= 1")
    assert tab.run("document.documentElement.dataset.theme") == "light"
    tab.run("localStorage.clear()")


def test_the_page_reconnects_to_the_next_daemon(browser, machine, page):
    tab = open_page(browser, page)
    # There is no tenant yet: its `allot run` would start the next daemon itself.
    (daemon,) = machine.daemons()
    # The daemon is stopped: the connection exists, but no data arrives.
    os.kill(daemon, signal.SIGSTOP)
    tab.wait("/^allotd sends nothing. The figures are from [0-9:]{8}.$/"
             ".test(document.querySelector('#connection').textContent)")
    os.kill(daemon, signal.SIGCONT)
    tab.wait("document.querySelector('#connection').textContent.startsWith('live') && document.body.className === ''")
    os.kill(daemon, 9)
    tab.wait("document.querySelector('#connection').className === 'lost' && document.body.className === 'old'")
    assert re.fullmatch(r"allotd does not answer; trying again. The figures are from [0-9:]{8}\.",
                        tab.run("document.querySelector('#connection').textContent"))
    # The next daemon has the same address.
    directory = page.read_file.parent
    settings = (directory / "settings").read_text().replace("127.0.0.1:0", page.address)
    (directory / "settings").write_text(settings)
    start("allotd", "--private", "--run-dir", machine.run_dir, "--sim-socket", machine.run_dir / "sim.sock", "--nvml",
          BUILD / "sim" / "libnvidia-ml.so.1", "--config", directory / "settings")
    tab.wait("document.querySelector('#connection').textContent.startsWith('live') && document.body.className === ''")
    start_load(machine, "able", "--memory", "8GiB")
    tab.wait(f"{cell('able', 1)}")


def test_a_hidden_page_requests_nothing(browser, machine, page):
    tab = open_page(browser, page)
    tab.run("Object.defineProperty(document, 'hidden', {value: true, configurable: true}),"
            "document.dispatchEvent(new Event('visibilitychange'))")
    seen = tab.run("document.documentElement.dataset.states")
    time.sleep(1)
    assert int(tab.run("document.documentElement.dataset.states")) <= int(seen) + 1
    tab.run("delete document.hidden, document.dispatchEvent(new Event('visibilitychange'))")
    tab.wait(f"Number(document.documentElement.dataset.states) > {seen} + 1")


@pytest.mark.skipif("ALLOT_SCREENSHOTS" not in os.environ, reason="ALLOT_SCREENSHOTS names no folder")
def test_pictures_for_the_documentation(browser, machine2, tmp_path):
    folder = pathlib.Path(os.environ["ALLOT_SCREENSHOTS"])
    page = Page(machine2, tmp_path, card="[gpu]\n")
    for name, cores in (("train", 45), ("eval", 30), ("notebook", 15)):
        start_load(machine2, name, "--gpu", "0", "--memory", f"{cores}GiB", "--cores", cores)
    start_load(machine2, "serve", "--gpu", "1", "--memory", "90GiB", "--on-full", "wait")
    machine2.start("--name", "batch", "--gpu", "1", "--memory", "80GiB", "--on-full", "wait", "--",
                   *machine2.load("--seconds", 120))
    for scheme in ("light", "dark"):
        tab = open_page(browser, page, scheme=scheme, width=1400, height=1800)
        tab.wait("Boolean(document.querySelector('#waiting li'))")
        time.sleep(20 if scheme == "light" else 5)
        tab.run("Object.defineProperty(document, 'hidden', {value: true, configurable: true}),"
                "document.dispatchEvent(new Event('visibilitychange')),"
                "document.querySelector('#host').textContent = 'node-1 (simulated)'")
        tab.picture(folder / f"page-{scheme}.png")
