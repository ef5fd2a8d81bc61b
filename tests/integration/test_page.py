"""The daemon's web page over HTTP: its files, its state, who may see and change what, and slow or numerous readers."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import socket
import ssl
import stat
import time

import pytest

from machines import BUILD, GIB, ROOT, wait_until
from page import CHANGE, READ, Page, ask, hold_tenants, page_in
from servers import start, start_servers
from test_metrics import start_fails
from test_metrics_tls import ask_by_tls, make_certificate

SITES = [ROOT / "src" / page / "site" for page in ("daemon/export/page", "http/dashboard")]
LOAD_MAX = 200 << 10


@pytest.fixture
def page(machine, tmp_path):
    return Page(machine, tmp_path)


def load(machine, name, *terms, seconds=60, mib=0):
    return machine.start("--name", name, *terms, "--",
                         *machine.load("--seconds", seconds, "--kernel-us", 1000, "--mib", mib))


def cpu_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# ---- what it tells ----

def test_who_waits_is_paused_or_off_the_card_as_ps_tells(page, machine):
    """Each of them on the page as in allot ps --json, and one that waits goes on when there is room."""
    first = load(machine, "first", "--memory", "60GiB", "--on-full", "wait")
    machine.wait_for_tenant("first", lambda t: t["devices"][0]["memory_used_bytes"])
    load(machine, "away", "--memory", "8GiB", "--on-full", "swap", mib=512)
    machine.wait_for_tenant("away", lambda t: t["swap"] and t["swap"]["swappable_bytes"])
    assert machine.allot("pause", "away", "--swap-out", *machine.sim).returncode == 0
    machine.wait_for_tenant("away", lambda t: t["swap"]["state"] == "out")
    load(machine, "held", "--memory", "8GiB")
    machine.wait_for_tenant("held", lambda t: t["devices"][0]["memory_used_bytes"])
    assert machine.allot("pause", "held", *machine.sim).returncode == 0
    load(machine, "queued", "--memory", "100GiB", "--on-full", "wait")
    told = machine.wait_for_tenant("queued", lambda t: t["memory_wait"])
    shown = {tenant["name"]: tenant for tenant in page.state()["tenants"]}
    listed = machine.tenants()
    for name, tenant in listed.items():
        # The first one works, and rests between pieces of it: those are two looks.
        states = ("running", "idle") if name == "first" else (tenant["state"],)
        assert shown[name]["state"] in states and tenant["state"] in states, name
        for member in ("kind", "state", "swapped_bytes", "swappable_bytes", "failed"):
            assert (shown[name]["swap"] or {}).get(member) == (tenant["swap"] or {}).get(member), (name, member)
    assert [listed[name]["state"] for name in ("away", "held", "queued")] == ["swapped", "paused", "queued"]
    assert shown["queued"]["memory_wait"]["place"] == told["memory_wait"]["place"] == 1
    # In hundredths on the page, which need not be rounded up.
    assert shown["queued"]["memory_wait"]["waited_s"] >= round(told["memory_wait"]["waited_s"], 2) - 0.01
    first.terminate()

    def goes_on():
        found = {tenant["name"]: tenant for tenant in page.state()["tenants"]}["queued"]
        return not found["memory_wait"] and found["state"] in ("running", "idle", "starting")
    wait_until(goes_on, what="the one that waited to go on")


# ---- its files ----

def test_files_and_their_sum(page):
    """All that the page names is there, is its own, and is little."""
    status, headers, text = page.ask("/", token=None)
    assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
    wanted, seen, total = ["/"], set(), 0
    while wanted:
        path = wanted.pop()
        seen.add(path)
        status, headers, text = page.ask(path, token=None)
        assert status == 200, path
        total += int(headers["Content-Length"]) + sum(len(name) + len(value) + 4 for name, value in headers.items())
        for name in re.findall(r'(?:src|href)="(/[^"]*)"', text) + re.findall(r'from "\./([^"]*)"', text):
            name = f"/{name.lstrip('/')}"
            if name not in seen and name not in wanted:
                wanted.append(name)
    assert total < LOAD_MAX, total
    assert_named_at_once(page)
    assert {"/page.css", "/page.js", "/uplot.js", "/uplot-license", "/source.js"} <= seen
    for path in [path for site in SITES for path in site.glob("*.*")]:
        expected = "/" if path.name == "index.html" else f"/{path.name}"
        assert expected in seen, f"{path}: nothing of the page asks for it"
        assert page.ask(expected, token=None)[2] == path.read_text()


def assert_named_at_once(page):
    """The page itself names all of its modules: none is asked for only when another has come."""
    text = page.ask("/")[2]
    named = set(re.findall(r'<link rel="modulepreload" href="/([^"]*)">', text))
    modules, wanted = set(), ["page.js"]
    while wanted:
        found = set(re.findall(r'from "\./([^"]*)"', page.ask(f"/{wanted.pop()}")[2])) - modules
        modules |= found
        wanted += found
    assert named == modules


def test_nothing_is_asked_of_elsewhere():
    """By what is written; test_page_chromium.py watches a browser."""
    for path in [path for site in SITES for path in site.glob("*.*")]:
        foreign = [url for url in re.findall(r"(?:https?:)?//[\w.-]+", path.read_text())
                   if url.startswith("http") and "www.w3.org" not in url]
        assert not foreign, (path, foreign)


def test_headers(page):
    for path in ("/", "/page.js", "/api/rights", "/api/state", "/events", "/none"):
        for method in ("HEAD", "POST"):
            _, headers, _ = page.ask(path, method)
            policy = headers["Content-Security-Policy"]
            assert policy.startswith("default-src 'self';") and "unsafe" not in policy and "http" not in policy
            assert "frame-ancestors 'none'" in policy
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Referrer-Policy"] == "no-referrer"
            assert headers["Cache-Control"] == "no-store"
            assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
            assert not headers["Set-Cookie"] and not headers["Access-Control-Allow-Origin"]


def test_paths_and_methods(page):
    for path in ("/index.html", "/..", "/../etc/passwd", "//", "/api", "/api/", "/api/statex", "/page.js/", "/api/create",
                 "/api/remove", "/api/cordon", "/metrics"):
        assert page.ask(path)[0] == 404, path
    for path, allow in (("/", "GET, HEAD"), ("/api/state", "GET, HEAD"), ("/events", "GET, HEAD")):
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "NONSENSE"):
            status, headers, _ = page.ask(path, method, token=CHANGE)
            assert (status, headers["Allow"]) == (405, allow), (path, method)
    for method in ("GET", "PUT", "DELETE", "OPTIONS"):
        status, headers, _ = page.ask("/api/set", method, token=CHANGE)
        assert (status, headers["Allow"]) == (405, "POST"), method
    status, headers, text = page.ask("/api/state", "HEAD")
    assert status == 200 and int(headers["Content-Length"]) > 500 and text == ""


# ---- the state ----

def test_the_state_is_as_ps_has_it(machine2, tmp_path):
    page = Page(machine2, tmp_path, card="[gpu]\n")
    load(machine2, "a", "--gpu", "0", "--memory", "8GiB", "--cores", "30", "--cores-limit", "60", "--priority", "5")
    load(machine2, "b", "--gpu", "0,1", "--memory", "4GiB", "--elastic", "on", "--cores", "20")
    machine2.wait_for_tenant("a", lambda t: t["state"] in ("running", "waiting"))
    machine2.wait_for_tenant("b", lambda t: t["devices"][0]["memory_used_bytes"])
    before, state, after = machine2.ps(), page.state(), machine2.ps()
    assert state["version"] == 1 and state["simulated"] is True
    assert state["host"] == os.uname().nodename and abs(state["time_s"] - time.time()) < 60
    for card, then in zip(before["devices"], state["devices"], strict=True):
        assert set(then) - set(card) == {"grantable_bytes"}
        for name in ("index", "uuid", "name", "memory_bytes", "promised_bytes", "promised_cores_pct", "granted_bytes",
                     "policy", "health", "health_reason", "cordoned"):
            assert then[name] == card[name], name
    assert state["devices"][0]["grantable_bytes"] == state["devices"][0]["memory_bytes"] - 12 * GIB
    for tenant, then, later in zip(before["tenants"], state["tenants"], after["tenants"], strict=True):
        assert set(then) <= set(tenant), set(then) - set(tenant)
        for name in ("name", "id", "uid", "priority", "on_full", "elastic", "violations", "memory_wait"):
            assert then[name] == tenant[name], name
        assert tenant["use_s"] - 0.01 <= then["use_s"] <= later["use_s"] + 0.01
        for device, now, last in zip(tenant["devices"], then["devices"], later["devices"], strict=True):
            assert set(now) <= set(device), set(now) - set(device)
            for name in ("index", "memory_quota_bytes", "memory_given", "cores_pct", "cores_limit_pct"):
                assert now[name] == device[name], name
            for name in ("waited_s", "denied", "leases"):
                assert device[name] - 0.01 <= now[name] <= last[name] + 0.01, name


def test_states_come_four_times_a_second_with_who_had_the_card(machine, page):
    for name in ("a", "b"):
        load(machine, name, "--memory", "8GiB", "--cores", "40")
        machine.wait_for_tenant(name, lambda t: t["devices"][0]["leases"] > 3)
    events = page.events()
    assert events.begin() == 200
    assert events.answer.headers["Content-Type"] == "text/event-stream"
    spans, clocks = {}, []
    while len(clocks) < 12:
        state = events.next()
        clocks.append(state["clock_ms"])
        (lane,) = state["leases"]
        for number, tenant, begin, length, kind, is_over in lane["spans"]:
            assert begin + length <= state["clock_ms"] + 0.02
            assert number not in spans or spans[number][:2] == (tenant, begin), "told twice, and not alike"
            spans[number] = (tenant, begin, length, kind, is_over)
    events.close()
    # A tick that comes late does not shift the others: so by their number.
    assert 200 < (clocks[-1] - clocks[0]) / (len(clocks) - 1) < 2000
    numbers = sorted(spans)
    assert numbers == list(range(numbers[0], numbers[-1] + 1)), "none is left out"
    ordered = [spans[number] for number in numbers]
    assert {tenant for tenant, *_ in ordered} == {"a", "b"} and {kind for *_, kind, _ in ordered} >= {"lease"}
    assert all(is_over for *_, is_over in ordered[:-1])
    for (_, begin, length, *_), (_, after, *_) in zip(ordered, ordered[1:]):
        assert begin + length <= after + 0.02, "one at a time"


def test_a_reader_is_told_of_differences(machine, page):
    """All tenants at first, then those that are otherwise, and who is gone."""
    with hold_tenants(machine, [(f"t{i}", 0, GIB) for i in range(20)]):
        events = page.events()
        assert events.begin() == 200
        first = events.told()
        assert "gone" not in first and len(first["tenants"]) == 20
        # Who does nothing is not told of again.
        told = [events.told() for _ in range(4)]
        assert all(one["gone"] == [] and len(one["tenants"]) == 0 for one in told[1:]), told
        load(machine, "busy", "--memory", "8GiB", "--cores", "40")
        while "busy" not in [tenant["name"] for tenant in events.told()["tenants"]]:
            pass
        # One that comes later has all of it.
        other = page.events()
        assert other.begin() == 200 and len(other.told()["tenants"]) == 21
        other.close()
    gone = set()
    while len(gone) < 20:
        gone |= set(events.told()["gone"])
    assert gone == {tenant["id"] for tenant in first["tenants"]}
    events.close()


def test_who_waits_for_memory_and_goes_on(machine, page):
    first = machine.start("--name", "first", "--memory", "100GiB", "--on-full", "wait", "--",
                          *machine.load("--seconds", 60))
    machine.wait_for_tenant("first", lambda t: t["devices"][0]["memory_granted_bytes"])
    machine.start("--name", "second", "--memory", "100GiB", "--on-full", "wait", "--", *machine.load("--seconds", 60))

    def second():
        return {tenant["name"]: tenant for tenant in page.state()["tenants"]}.get("second", {})

    waiting = wait_until(lambda: second().get("memory_wait") and second(), what="a wait")
    assert waiting["state"] == "queued" and waiting["memory_wait"]["place"] == 1
    assert waiting["devices"][0]["memory_reserve_bytes"] == 100 * GIB
    assert page.state()["devices"][0]["grantable_bytes"] < 100 * GIB
    first.terminate()
    wait_until(lambda: second().get("memory_wait", 0) is None, what="its end")
    assert second()["devices"][0]["memory_granted_bytes"] == 100 * GIB


def test_history_outlives_a_reader(machine, page):
    load(machine, "a", "--memory", "8GiB", "--cores", "40")
    machine.wait_for_tenant("a", lambda t: t["devices"][0]["got_1s_pct"] > 20)

    def history():
        return page_json(page, "/api/history")

    assert history()["tenants"] == [], "nobody has looked"
    events = page.events()
    assert events.begin() == 200 and events.next()
    events.close()
    told = wait_until(lambda: len(history()["ages_s"]) >= 3 and history(), what="samples after it")
    (row,) = told["tenants"]
    assert row["id"] == machine.tenants()["a"]["id"] and row["index"] == 0
    assert len(row["got_1s_pct"]) == len(row["memory_used_mib"]) == len(told["ages_s"])
    assert row["got_1s_pct"][-1] > 5
    assert row["memory_quota_mib"] == [[0, 8192]] and row["cores_limit_now_pct"][0] == [0, 40]
    assert told["ages_s"] == sorted(told["ages_s"], reverse=True)


def page_json(page, path):
    status, _, text = page.ask(path)
    assert status == 200, text
    return json.loads(text)


def test_topology_is_as_topo_has_it(machine2, tmp_path):
    page = Page(machine2, tmp_path, card="[gpu]\n")
    assert page_json(page, "/api/topology") == json.loads(machine2.allot("topo", "--json", *machine2.sim).stdout)


# ---- who may what ----

def test_tokens(page):
    for path in ("/api/state", "/api/history", "/api/topology", "/events"):
        for wrong in (None, "x", READ + "x", READ[:-1], "x" * 5000):
            status, headers, text = page.ask(path, token=wrong)
            assert status == 401 and headers["WWW-Authenticate"].startswith("Bearer "), (path, wrong)
            assert "tenants" not in text and "GPU" not in text
    assert page.state() and page.state(token=CHANGE)
    for token, read, change in ((None, False, False), (READ, True, False), (CHANGE, True, True)):
        status, _, text = page.ask("/api/rights", token=token)
        assert status == 200 and text == f'{{"read":{str(read).lower()},"change":{str(change).lower()}}}'
    # Another token counts from now on; without a file nobody may read.
    page.read_file.write_text("quite-another-token\n")
    assert page.ask("/api/state")[0] == 401
    assert page.ask("/api/state", token="quite-another-token")[0] == 200
    page.read_file.unlink()
    assert page.ask("/api/state")[0] == 503 and page.ask("/api/state", token=CHANGE)[0] == 200


def test_changes(machine, page):
    load(machine, "a", "--memory", "8GiB", "--cores", "30")
    machine.wait_for_tenant("a", lambda t: t["devices"][0]["used_s"] > 0)
    status, text = page.change("set", {"name": "a", "devices": [{"memory_bytes": 6 * GIB, "cores_pct": 20}]})
    assert status == 200 and json.loads(text)["devices"][0]["memory_quota_bytes"] == 6 * GIB
    device = machine.tenants()["a"]["devices"][0]
    assert (device["memory_quota_bytes"], device["cores_pct"]) == (6 * GIB, 20)
    assert page.change("pause", {"name": "a"})[0] == 200
    machine.wait_for_tenant("a", lambda t: t["state"] == "paused")
    assert page.change("resume", {"name": "a"})[0] == 200
    machine.wait_for_tenant("a", lambda t: t["state"] != "paused")
    assert page.change("unqueue", {"name": "a"})[0] == 200
    log = (machine.run_dir / "allotd.log").read_text()
    assert "page: a user of the web page made a change: set: " in log
    assert "page: a user of the web page made a change: pause: " in log


@pytest.mark.parametrize("operation, body, status, says", [
    ("set", '{"name":"none","priority":1}', 404, "no tenant 'none'"),
    ("set", '{"name":"a","devices":[{"cores_pct":101}]}', 400, "cores_pct"),
    ("set", '{"name":"a","devices":[{"memory_bytes":1}]}', 409, "memory"),
    ("set", '{"name":"a"}', 400, "devices: missing"),
    ("set", "{", 400, "not JSON"),
    ("set", "[]", 400, "must be one JSON object"),
    ("set", "", 400, "not JSON"),
    ("set", '{"name":"\xff"}', 400, "not JSON"),
    ("pause", "{}", 400, "name: missing"),
    # The operation is the path's, whatever the body says.
    ("resume", '{"op":"remove","version":7,"name":"a"}', 200, '"ok":true'),
])
def test_changes_that_are_refused(machine, page, operation, body, status, says):
    tenant = machine.start("--name", "a", "--memory", "1GiB", "--cores", "30", "--", *machine.load("--seconds", 60))
    before = machine.wait_for_tenant("a", lambda t: t["devices"][0]["memory_used_bytes"] > 1)
    got, _, text = page.ask(f"/api/{operation}", "POST", CHANGE, body.encode("latin-1"))
    assert got == status and says in text, (got, text)
    assert "\n" not in text.rstrip("\n")
    after = machine.tenants()["a"]["devices"][0]
    assert after["memory_quota_bytes"] == before["devices"][0]["memory_quota_bytes"] and after["cores_pct"] == 30
    tenant.terminate()


def test_who_may_not_change(machine, page):
    tenant = machine.start("--name", "a", "--memory", "1GiB", "--", "sleep", "60")
    machine.wait_for_tenant("a")
    request = {"name": "a"}
    assert page.change("pause", request, token=None)[0] == 401
    assert page.change("pause", request, token=READ)[0] == 401
    assert page.change("pause", request, token="x" * 40)[0] == 401
    # A browser that another site made ask says whose script it was.
    assert page.change("pause", request, Origin="http://evil.example") == (
        403, "refused: a page of another site (header Origin) sent the request\n")
    assert page.change("pause", request, Origin="null")[0] == 403
    assert machine.tenants()["a"]["state"] == "starting"
    assert page.change("pause", request, Origin=page.url.rstrip("/"))[0] == 200
    assert machine.tenants()["a"]["state"] == "paused"
    status, text = page.change("set", {"name": "a", "x": "y" * 20000})
    assert status == 413, text
    tenant.terminate()


def test_a_socket_needs_no_token_and_changes_nothing(machine, tmp_path):
    path = machine.run_dir / "page.sock"
    said = start_servers(machine, tmp_path, f"web_listen = unix:{path}\n")
    assert f"the page is served at unix:{path}, for this user and root; it changes nothing" in said
    assert stat.S_IMODE(path.stat().st_mode) == 0o600, "a private daemon's is its user's"
    assert ask(f"unix:{path}", "/api/state", Host="any.name")[0] == 200
    status, _, text = ask(f"unix:{path}", "/api/pause", "POST", "x" * 20, "{}")
    assert status == 403 and "web_change_token_file is none" in text


@pytest.mark.skipif(os.getuid() != 0, reason="the system's daemon is root's")
def test_the_systems_daemon_shows_its_state_to_the_machine(machine, tmp_path):
    """Without a token: to who asks by an address, and not to who was led here by a name."""
    (tmp_path / "settings").write_text("web_listen = 127.0.0.1:0\nwatch_tasks = off\n")
    (tmp_path / "cards").write_text("[gpu]\n")
    machine.run_dir.mkdir(parents=True, mode=0o755)
    start("allot-sim", "--socket", machine.run_dir / "sim.sock", "--spec", tmp_path / "cards")
    said = start("allotd", "--run-dir", machine.run_dir, "--sim-socket", machine.run_dir / "sim.sock", "--nvml",
                 BUILD / "sim" / "libnvidia-ml.so.1", "--config", tmp_path / "settings")
    assert "for every user of this machine; it changes nothing" in said
    address = page_in(said).split("/")[2]
    assert ask(address, "/api/state")[0] == 200
    for name in ("evil.example", f"evil.example:{address.rpartition(':')[2]}"):
        status, _, text = ask(address, "/api/state", Host=name)
        assert status == 403 and "by an IP address or as localhost" in text
    assert ask(address, "/api/state", Host="localhost")[0] == 200
    assert ask(address, "/events", Host="evil.example")[0] == 403


@pytest.mark.parametrize("settings, says", [
    ("web_listen = 127.0.0.1:0\n", "only you may see the tenants of your private daemon: set web_token_file"),
    ("web_listen = 0.0.0.0:0\n", "web_listen: '0.0.0.0:0' can be reached from other machines: name a web_token_file"),
    ("web_listen = 0.0.0.0:0\nweb_change_token_file = /etc/hostname\n", "name a web_token_file"),
    ("web_listen = 127.0.0.1:0\nweb_token_file = /none/such\n", "web_token_file: /none/such: No such file"),
    ("web_listen = 127.0.0.1:0\nweb_token_file = token\n", "web_token_file: 'token': must be a full path, or none"),
    ("web_listen = here\n", "web_listen"),
    ("web_listen = unix:/tmp/x\nweb_tls_key = /x\n", "web_tls_certificate: must be set too, since web_tls_key is set"),
])
def test_settings_that_are_refused(machine, tmp_path, settings, says):
    start_fails(machine, tmp_path, settings, [says])


def test_beyond_this_machine_only_by_a_token_and_said_so(machine, tmp_path):
    token = tmp_path / "token"
    token.write_text(READ)
    said = start_servers(machine, tmp_path, f"web_listen = 0.0.0.0:0\nweb_token_file = {token}\n")
    assert "for clients with the token of web_token_file, also from other machines; it changes nothing" in said
    assert "others on the network can read the token" in said
    address = f"127.0.0.1:{re.search(r'0.0.0.0:([0-9]+)', said).group(1)}"
    assert ask(address, "/api/state")[0] == 401 and ask(address, "/api/state", token=READ, Host="gpu7.example")[0] == 200


def test_off_by_default(machine, tmp_path):
    said = start_servers(machine, tmp_path, "")
    assert "page is served" not in said


def test_tls(machine, tmp_path):
    certificate, key = make_certificate(tmp_path, "one", "one")
    token = tmp_path / "token"
    token.write_text(READ)
    said = start_servers(machine, tmp_path, f"web_listen = 127.0.0.1:0\nweb_token_file = {token}\n"
                                            f"web_tls_certificate = {certificate}\nweb_tls_key = {key}\n")
    assert page_in(said).startswith("https://")
    address = page_in(said).split("/")[2]
    assert ask_by_tls(address, certificate, "/")[0] == 200
    assert ask_by_tls(address, certificate, "/api/state")[0] == 401
    status, text = ask_by_tls(address, certificate, "/api/state", Authorization=f"Bearer {READ}")
    assert status == 200 and '"devices":[' in text
    # A stream goes on by TLS as well.
    context = ssl.create_default_context(cafile=certificate)
    host, _, port = address.rpartition(":")
    with context.wrap_socket(socket.create_connection((host, int(port)), 20), server_hostname=host) as stream:
        stream.sendall(f"GET /events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {READ}\r\n\r\n".encode())
        text = b""
        while text.count(b"data: {") < 3:
            part = stream.recv(65536)
            assert part
            text += part


# ---- readers ----

def test_nothing_is_made_while_nobody_looks(machine, page):
    """By processor time: that of the daemon's threads with readers, and after them."""
    (daemon,) = machine.daemons()
    events = [page.events() for _ in range(3)]
    for one in events:
        assert one.begin() == 200

    def spent(seconds, read):
        begin, end = cpu_s(daemon), time.monotonic() + seconds
        states = 0
        while time.monotonic() < end:
            states += bool(read())
        return states, cpu_s(daemon) - begin

    states, _ = spent(1, events[0].next)
    assert states >= 2
    for one in events:
        one.close()
    time.sleep(0.6)  # their end is noticed at the next states
    # Nothing but the sample for the history, each 5 s.
    _, cost = spent(2, lambda: time.sleep(0.1))
    assert cost <= 0.1, cost


def test_two_hundred_tenants_on_eight_cards_cost_little(machine, tmp_path):
    """At most 2 % of a core at four states a second: 5 ms of the daemon's main thread each."""
    machine.spec = "h200x8"
    page = Page(machine, tmp_path, card="[gpu]\n" * 7)
    with hold_tenants(machine, [(f"tenant-number-{number}", number % 8, GIB) for number in range(200)]):
        (daemon,) = machine.daemons()

        def main_thread_s():
            return int(pathlib.Path(f"/proc/{daemon}/task/{daemon}/schedstat").read_text().split()[0]) / 1e9

        events = page.events()
        assert events.begin() == 200
        assert len(events.next()["tenants"]) == 200
        before = main_thread_s()
        for _ in range(16):
            events.next()
        cost_s = (main_thread_s() - before) / 16
        print(f"{1e3 * cost_s:.2f} ms of processor time a state: {100 * 4 * cost_s:.2f} % of a core")
        assert cost_s < 0.005
        events.close()


def test_a_slow_reader_is_dropped_and_others_are_not(machine, page):
    """Its states are not kept for it: it misses them, and then it goes."""
    # What the kernel keeps for a reader is many states of an idle card: so one that is long.
    tenants = [machine.start("--name", f"t{i}", "--memory", "1GiB", "--", "sleep", "300") for i in range(24)]
    machine.wait_for_tenant("t23")
    slow, quick = page.events(receive_bytes=4096), page.events()
    assert quick.begin() == 200
    (daemon,) = machine.daemons()

    def sockets():
        return sum(1 for fd in pathlib.Path(f"/proc/{daemon}/fd").iterdir()
                   if os.path.islink(fd) and os.readlink(fd).startswith("socket:"))

    before = sockets()
    deadline = time.monotonic() + 60
    clocks = []
    while sockets() == before and time.monotonic() < deadline:
        clocks.append(quick.next()["clock_ms"])
    assert sockets() == before - 1, "the slow one was not dropped"
    assert len(clocks) > 10 and quick.next()
    slow.close()
    quick.close()
    for tenant in tenants:
        tenant.terminate()


def test_no_more_than_so_many_readers(page):
    readers = [page.events() for _ in range(16)]
    for reader in readers:
        assert reader.begin() == 200 and reader.next()
    status, _, text = page.ask("/events")
    assert status == 503 and "too many browsers show this page" in text
    assert page.ask("/api/state")[0] == 200
    readers.pop().close()
    again = []

    def is_let_in():
        reader = page.events()
        if reader.begin() == 200:
            again.append(reader)
            return True
        reader.close()
        return False

    wait_until(is_let_in, what="a place that was left")
    for reader in [*readers, *again]:
        assert reader.next()
        reader.close()


def test_readers_that_vanish(machine, page):
    (daemon,) = machine.daemons()
    for _ in range(40):
        reader = page.events()
        reader.begin()
        reader.close()
    reader = None

    def works():
        nonlocal reader
        reader = page.events()
        return reader.begin() == 200 and reader.next()

    wait_until(works, what="a stream after many that were left")
    assert machine.daemons() == {daemon}
    reader.close()


def test_the_daemon_ends_while_readers_read(machine, page):
    readers = [page.events() for _ in range(4)]
    for reader in readers:
        assert reader.begin() == 200 and reader.next()
    (daemon,) = machine.daemons()
    os.kill(daemon, 15)
    for reader in readers:
        with contextlib.suppress(OSError, http.client.HTTPException, AssertionError):
            while reader.next():
                pass
        reader.close()
    wait_until(lambda: not machine.daemons(), what="its end")
    assert "ERROR: AddressSanitizer" not in (machine.run_dir / "allotd.log").read_text()
