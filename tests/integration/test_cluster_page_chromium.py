"""The cluster's web page in a real Chromium: it shows changes of nodes, pods and reasons, filters them, and opens a node by
mouse and by keyboard. It requests nothing from other machines. ALLOT_SCREENSHOTS=DIR keeps pictures for the documentation."""

import json
import os
import pathlib
import time

import pytest

from api_server import ApiServer, node, pod
from chromium import find_chromium
from page_cost import count_changes, measure
from test_cluster_page import (GPU, MEMORY, NODES, PODS, PODS_IN_ALL, SECONDS, TOKEN, ClusterPage, node_name, changing, fill,
                               fill_large_cluster)
from test_page_chromium import CONTRAST

pytestmark = pytest.mark.skipif(not find_chromium(), reason="no Chromium that starts without a snap: scripts/test "
                                "installs Debian's package; Ubuntu's is a snap")
LOAD_MAX = 200 << 10
TAB = "Tab"


@pytest.fixture
def api():
    with ApiServer() as api:
        yield api


@pytest.fixture
def page(tmp_path, api):
    page = ClusterPage(tmp_path, api, "web_node_url = http://{node}.example:9401/\n")
    yield page
    page.scheduler.stop()


def open_page(browser, page, view="", **more):
    """Opens the page in a tab, and types the token as a user does."""
    tab = browser.open(f"{page.url}{view}", **more)
    tab.wait("document.querySelector('#token-dialog').open")
    tab.type(TOKEN)
    tab.press("Enter")
    tab.wait("Number(document.documentElement.dataset.states) >= 1")
    return tab


def assert_no_faults(tab, page):
    assert all("401" in str(message) for message in tab.complaints()), tab.complaints()
    assert tab.requests() and all(url.startswith(page.url) for url in tab.requests()), set(tab.requests())


def rows(table):
    return f"[...document.querySelectorAll('#{table}-table tbody tr')].map(row => row.cells[0].textContent).join()"


def test_the_page_follows_the_cluster(browser, page, api):
    fill(api)
    tab = open_page(browser, page)
    tab.wait(f"{rows('node')} === 'a-1,a-2,b-1'")
    tab.wait(f"{rows('pod')} === 'team-b/large'")
    tab.wait("document.querySelector('td.why').textContent.startsWith('none of 3 nodes has the requested GPUs free')")
    assert "too little memory free" in tab.run("document.querySelector('td.why ul').textContent")
    # A new node has room for the pod.
    api.put(NODES, node("c-1", gpus=1, memory_mib=143360))
    tab.wait(f"{rows('node')} === 'a-1,a-2,b-1,c-1'")
    tab.wait("document.querySelector('td.why').textContent.startsWith('1 of 4 nodes have enough free GPUs')")
    api.put(PODS, pod("large", "team-b", {GPU: "1", MEMORY: "90000"}, node="c-1", shares="GPU-c-1-0,NVIDIA,90000,45:;"))
    tab.wait("!document.querySelector('#pods-none').hidden")
    tab.wait("document.querySelectorAll('#node-table tbody tr')[3].textContent.includes('45 %')")
    tab.wait("document.querySelector('#summary').textContent.includes('0 waiting')")
    api.drop(NODES, "a-2")
    tab.wait(f"{rows('node')} === 'a-1,b-1,c-1'")
    assert_no_faults(tab, page)


def test_filters_and_the_details_of_a_node(browser, page, api):
    tab = open_page(browser, page)
    none = "document.querySelector('#{0}-none').checkVisibility() && document.querySelector('#{0}-none').textContent"
    tab.wait(f"{none.format('pods')} === 'No pod asks for GPUs.'")
    assert tab.run(none.format("nodes")).startswith("No node reports GPUs.")
    fill(api)
    tab.wait(f"{rows('node')} === 'a-1,a-2,b-1'")
    choose = "(() => {{ const s = document.querySelector('{}'); s.value = '{}'; s.dispatchEvent(new Event('input')); }})()"
    tab.run(choose.format("#filter-node-state", "unhealthy"))
    tab.wait(f"{rows('node')} === 'b-1'")
    tab.run(choose.format("#filter-node-state", "all"))
    tab.run(choose.format("#filter-pod-state", "all"))
    tab.wait(f"{rows('pod')} === 'team-b/large,team-a/train,team-a/whole,team-b/serve'")
    tab.run(choose.format("#filter-namespace", "team-b"))
    tab.wait(f"{rows('pod')} === 'team-b/large,team-b/serve' && {rows('node')} === 'a-1'")
    tab.run(choose.format("#filter-node", "other"))
    tab.wait(f"{none.format('nodes')} === 'No node matches the filters.'")
    # An invalid name is reported, and does no harm.
    tab.run(choose.format("#filter-node", "a_1"))
    tab.wait("document.querySelector('#filter-error').textContent.includes('must be made of a-z')")
    tab.run(choose.format("#filter-node", ""))
    tab.wait("document.querySelector('#filter-error').textContent === ''")
    # The URL contains the filters, so that it can be shared.
    assert tab.run("location.hash") == "#pod_state=all&namespace=team-b"
    tab.wait(f"{rows('node')} === 'a-1'")
    tab.run("document.querySelector('#node-table tbody button').click()")
    tab.wait("!document.querySelector('#open').hidden && document.querySelectorAll('#open-cards li').length === 2")
    assert tab.run("document.activeElement.id") == "open-title"
    assert tab.run("document.querySelector('#open-title').textContent") == "Node a-1"
    assert "75 % promised" in tab.run("document.querySelector('#open-cards li').textContent")
    assert "team-a/train" in tab.run("document.querySelector('#open-pods').textContent")
    assert tab.run("document.querySelector('#open-link').href") == "http://a-1.example:9401/"
    assert tab.run("document.querySelector('#topology svg title').textContent") == \
        "GPU 0: team-a/train, team-b/serve. GPU 1: no tenant"
    api.put(PODS, pod("new", "team-b", node="a-1", shares="GPU-a-1-1,NVIDIA,8192,10:;"))
    tab.wait("document.querySelector('#open-pods').textContent.includes('team-b/new')")
    tab.press("Escape")
    tab.wait("document.querySelector('#open').hidden")
    assert all("400" in str(message) or "401" in str(message) for message in tab.complaints()), tab.complaints()


def test_a_node_is_opened_by_keyboard(browser, page, api):
    """Opens a node by keys only. Each element that gets the focus on the way has a name."""
    fill(api)
    tab = open_page(browser, page)
    tab.wait(f"{rows('node')} === 'a-1,a-2,b-1'")
    tab.run("document.activeElement.blur()")
    tab.press("/")
    assert tab.run("document.activeElement.id") == "filter-node"
    tab.type("b-")
    tab.wait(f"{rows('node')} === 'b-1'")
    names = []
    for _ in range(30):
        tab.press(TAB)
        names.append(tab.run("document.activeElement.ariaLabel || document.activeElement.labels?.[0]?.textContent || "
                             "document.activeElement.textContent"))
        if names[-1] == "b-1":
            break
    assert names[-1] == "b-1" and all(names), names
    tab.press("Enter")
    tab.wait("document.activeElement.id === 'open-title'")
    tab.press("Escape")
    tab.wait("document.querySelector('#open').hidden")
    before = tab.run("document.documentElement.dataset.theme")
    tab.press("t")
    assert tab.run("document.documentElement.dataset.theme") != before
    tab.run("localStorage.clear()")
    assert_no_faults(tab, page)


def test_every_control_and_picture_has_a_name(browser, page, api):
    fill(api)
    tab = open_page(browser, page, "#open=a-1")
    tab.wait("document.querySelectorAll('#open-cards li').length === 2")
    tab.wait("document.querySelectorAll('td.why li').length > 0")
    tab.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    roles = {}
    for one in tab.command("Accessibility.getFullAXTree")["nodes"]:
        if not one.get("ignored"):
            roles.setdefault(one["role"]["value"], []).append(one.get("name", {}).get("value", ""))
    for role in ("button", "textbox", "searchbox", "combobox", "img", "region", "link", "columnheader", "rowheader", "heading"):
        assert all(roles.get(role, [])), (role, roles.get(role))
    assert roles["searchbox"] == ["Node", "Namespace"] and roles["combobox"] == ["Nodes that are", "Pods that are"]
    assert "search" in roles and "status" in roles and "main" in roles
    tab.run("[...document.querySelectorAll('#node-table th button')].find(b => b.textContent === 'Memory promised').click()")
    tab.wait("[...document.querySelectorAll('#node-table th')].find(h => h.textContent === 'Memory promised').ariaSort === 'descending'")
    tab.wait(f"{rows('node')} === 'b-1,a-1,a-2'")


def test_text_has_contrast_in_both_themes(browser, page, api):
    fill(api)
    tab = open_page(browser, page, "#open=a-1")
    tab.wait("document.querySelectorAll('td.why li').length > 0")
    tab.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    for scheme in ("light", "dark"):
        tab.prefer(scheme)
        tab.wait(f"document.documentElement.dataset.theme === '{scheme}'")
        assert json.loads(tab.run(CONTRAST)) == [], scheme


def test_cost_of_the_largest_cluster(browser, tmp_path, api):
    """For the largest cluster, 5,000 nodes with 8 GPUs and 40,000 pods, the page loads few bytes, quickly. A change of one row
    costs as much as one row."""
    fill_large_cluster(api)
    page = ClusterPage(tmp_path, api)
    try:
        page.until("", lambda s: s["cluster"]["pods"] == PODS_IN_ALL, "all pods")
        tab = open_page(browser, page)
        tab.wait("document.querySelectorAll('#node-table tbody tr').length === 50")
        tab.wait("document.querySelectorAll('#pod-table tbody tr').length === 40")
        assert tab.run("document.querySelector('#nodes-shown').textContent") == "1 to 50 of 5000"
        loaded = tab.loaded_bytes()
        state = len(page.ask("/api/state")[2])
        assert loaded + state < LOAD_MAX, (loaded, state)
        # An idle machine takes a tenth of a second; here other programs may use the CPUs.
        painted_ms, shown_ms = tab.load_times_ms()
        print(f"load: something to see after {painted_ms:.0f} ms, live values after {shown_ms:.0f} ms; {loaded} bytes, "
              f"{state} bytes of a whole state")
        assert painted_ms < 10000 and shown_ms < 10000
        tab.run("document.querySelector('#nodes-pager button:last-child').click()")
        tab.wait("document.querySelector('#nodes-shown').textContent === '51 to 100 of 5000'")
        tab.wait("document.querySelector('#node-table tbody th').textContent.startsWith('gpu-00050')")
        assert_no_faults(tab, page)
        browser.close_tabs()
        with changing(api, node_name(0)):
            tab = open_page(browser, page, "#pod_state=bound&node=gpu-0000", domains=["Runtime"])
            tab.wait("document.querySelectorAll('#node-table tbody tr').length === 10")
            each = measure(browser, tab, "changes of one node of 5,000", SECONDS)
            done, states = count_changes(tab, SECONDS)
        assert states > 1
        assert each["LayoutCount"] < 2.5 and each["RecalcStyleCount"] < 2.5
        # Only the figures of the row and of the cluster change, though 80 pods and 10 nodes are shown.
        assert done["texts"] < 12 * states and done["nodes"] <= 2 * states, done
        browser.close_tabs()
        # The last page that the server sends. Pods behind it can be found by a filter.
        tab = open_page(browser, page, "#pod_state=all&pods_from=20000")
        tab.wait("document.querySelector('#pods-shown').textContent.startsWith('20001 to 20050 of 400')")
        assert tab.run("document.querySelector('#pods-pager button:last-child').disabled")
    finally:
        page.scheduler.stop()


@pytest.mark.skipif("ALLOT_SCREENSHOTS" not in os.environ, reason="ALLOT_SCREENSHOTS names no folder")
def test_pictures_for_the_documentation(browser, tmp_path, api):
    folder = pathlib.Path(os.environ["ALLOT_SCREENSHOTS"])
    page = ClusterPage(tmp_path, api, "web_node_url = http://{node}:9401/\n")
    try:
        for i in range(12):
            more = {"health": False} if i == 7 else {}
            one = node(f"gpu-{i:02}", gpus=4, memory_mib=143360, kind="NVIDIA-H200", **more)
            links = [{"uuid": f"GPU-gpu-{i:02}-{a}",
                      "score": {f"GPU-gpu-{i:02}-{b}": 1810 if a // 2 == b // 2 else 40 for b in range(4) if a != b}}
                     for a in range(4)]
            one["metadata"]["annotations"]["hami.io/node-nvidia-score"] = json.dumps(links)
            api.put(NODES, one)
            for p in range(i % 5 + 2 if i != 9 else 0):
                team = ("vision", "speech", "search")[(i + p) % 3]
                share = f"GPU-gpu-{i:02}-{p % 4},NVIDIA,{20480 + 10240 * (p % 3)},{20 + 15 * (p % 3)}:;"
                api.put(PODS, pod(f"{('train', 'serve', 'notebook')[p % 3]}-{i}{p}", team, node=f"gpu-{i:02}", shares=share))
        api.put(PODS, pod("pretrain", "speech", {GPU: "8"}))
        api.put(PODS, pod("large", "vision", {GPU: "4", MEMORY: "140000", "nvidia.com/gpucores": "80"},
                          annotations={"nvidia.com/use-gputype": "H100"}))
        for scheme in ("light", "dark"):
            tab = open_page(browser, page, "#open=gpu-03&order=memory", scheme=scheme, width=1180, height=2400)
            tab.wait("document.querySelectorAll('td.why li').length > 1")
            tab.run("document.querySelectorAll('#pod-table details').forEach(d => d.open = true)")
            time.sleep(20 if scheme == "light" else 5)
            tab.run("Object.defineProperty(document, 'hidden', {value: true, configurable: true}),"
                    "document.dispatchEvent(new Event('visibilitychange'))")
            tab.picture(folder / f"cluster-page-{scheme}.png")
    finally:
        page.scheduler.stop()
