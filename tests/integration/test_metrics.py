"""/metrics of allotd on the simulated GPU. It agrees with `allot ps`, has Prometheus's format, and answers only authorized
clients; no client can harm the daemon."""

import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import time

import pytest

from machines import BUILD, GIB, ROOT, kill_servers, make_machine, wait_until
from python_tenant import MIB, Tenant
from scrape import TOKEN, address_in, listen, request, scrape, wait_for_page
from servers import start_servers

cuda = pytest.importorskip("cuda.bindings.driver")

HOLD = """
start()
p = ok(cu.cuMemAlloc({mib} << 20))
look("held")
"""


@pytest.fixture
def served(machine, tmp_path):
    """The address at which the machine's daemon serves its metrics."""
    return listen(machine, tmp_path)


def find_promtool():
    """The path of promtool, or None. scripts/test extracts it from Debian's package of Prometheus."""
    here = ROOT / "build" / "promtool"
    return str(here) if here.exists() else shutil.which("promtool")


def hold(machine, python, name, mib, *options, memory=None):
    """Starts a tenant that allocates `mib` MiB and then prints "held". Its quota is `memory`, or has room for a context."""
    tenant = Tenant(machine, python, HOLD.format(mib=mib), memory or f"{mib + 1024}MiB", name,
                    options)
    return tenant


# ---- values ----

def assert_between(before, value, after, name):
    assert before <= value <= after, f"{name}: {before} {value} {after}"


def test_values_agree_with_ps(machine, python, served):
    loader = machine.start("--name", "loads", "--memory", "8GiB", "--cores", "30",
                           "--cores-limit", "60", "--priority", "5", "--",
                           *machine.load("--seconds", 60))
    holder = hold(machine, python, "holds", 2000, "--elastic", "on", "--cores", "20",
                  "--host-memory", "1GiB")
    assert holder.line() == "held"
    machine.wait_for_tenant("loads", lambda t: t["devices"][0]["used_s"] > 0.3)
    before = machine.ps()
    page = scrape(served)
    after = machine.ps()

    (card,) = before["devices"]
    assert page.label("allot_device_info", "name", device="0") == card["name"]
    assert page.value("allot_device_memory_bytes", uuid=card["uuid"]) == card["memory_bytes"]
    assert page.value("allot_device_memory_promised_bytes") == card["promised_bytes"]
    assert page.value("allot_device_cores_promised_ratio") == pytest.approx(0.5)
    assert page.value("allot_device_context_bytes") == card["context_bytes"]
    assert 0 < page.value("allot_device_busy_ratio") <= 1
    for tenant, then in zip(before["tenants"], after["tenants"]):
        name, (device,), (later,) = tenant["name"], tenant["devices"], then["devices"]

        def value(metric, name=name):
            return page.value(f"allot_tenant_{metric}", tenant=name)

        assert value("memory_quota_bytes") == device["memory_quota_bytes"]
        assert value("memory_used_bytes") == device["memory_used_bytes"]
        assert value("cores_asked_ratio") == pytest.approx(device["cores_pct"] / 100)
        assert value("cores_guaranteed_ratio") == pytest.approx(device["cores_effective_pct"] / 100)
        assert value("cores_limit_ratio") == pytest.approx(device["cores_limit_pct"] / 100)
        assert value("priority") == tenant["priority"]
        assert value("processes") == len(tenant["processes"])
        assert sum(count for _, count in page.all("allot_tenant_violations_total", tenant=name)) \
            == tenant["violations"]
        assert value("host_memory_quota_bytes") == tenant["host_memory_quota_bytes"]
        for metric, field in (("gpu_seconds_total", "used_s"), ("leases_total", "leases"),
                              ("gate_wait_seconds_total", "waited_s"),
                              ("allocations_denied_total", "denied")):
            assert_between(device[field], value(metric), later[field], (name, metric))
        assert page.label("allot_tenant_info", "id", tenant=name) == tenant["id"]
    assert page.label("allot_tenant_state", "state", tenant="holds") == "idle"
    assert sum(count for _, count in page.all("allot_tenants")) == 2
    assert page.value("allot_tenant_lends_total", tenant="loads") is None
    assert page.value("allot_tenant_lends_total", tenant="holds") is not None
    loader.terminate()
    holder.go()
    holder.end()


def test_lent_time_and_limits_are_counted(machine, served):
    """A tenant that is alone on the GPU is lent the unused time, and the lending is counted."""
    machine.start("--name", "a", "--memory", "1GiB", "--cores", "30", "--elastic", "on", "--",
                  *machine.load("--seconds", 60, "--kernel-us", 1000))
    page = wait_for_page(served, lambda p: (p.value("allot_tenant_cores_lent_ratio") or 0) > 0.3,
                         "the lent part")
    assert page.label("allot_tenant_elastic_reason", "reason", tenant="a") == "lent"
    assert page.value("allot_tenant_lends_total", tenant="a") >= 2
    assert page.value("allot_tenant_cores_limit_now_ratio") == pytest.approx(
        0.3 + page.value("allot_tenant_cores_lent_ratio"))
    assert page.value("allot_tenant_throttled_seconds_total") > 0
    used = page.value("allot_tenant_gpu_seconds_total")
    wait_for_page(served, lambda p: p.value("allot_tenant_gpu_seconds_total") > used + 0.1)


def test_a_wait_for_memory_is_shown_until_it_is_granted(machine, python, served):
    first = hold(machine, python, "first", 100 << 10, "--on-full", "wait")
    assert first.line() == "held"
    second = hold(machine, python, "second", 100 << 10, "--on-full", "wait")
    page = wait_for_page(served,
                         lambda p: p.value("allot_tenant_memory_wait_place", tenant="second"))
    assert page.value("allot_tenant_memory_wait_place", tenant="second") == 1
    assert page.label("allot_tenant_state", "state", tenant="second") == "queued"
    assert page.value("allot_tenants", state="queued") == 1
    # Its context is the first request.
    assert page.value("allot_tenant_memory_wanted_bytes", tenant="second") >= 500 * MIB
    assert page.value("allot_tenant_memory_reserve_bytes", tenant="second") == 101 * GIB
    assert page.value("allot_tenant_memory_granted_bytes", tenant="second") == 0
    assert page.value("allot_tenant_memory_granted_bytes", tenant="first") == 101 * GIB
    assert page.value("allot_tenant_memory_wait_seconds", tenant="first") is None
    waited = page.value("allot_tenant_memory_wait_seconds", tenant="second")
    time.sleep(0.3)
    page = scrape(served)
    assert page.value("allot_tenant_memory_wait_seconds", tenant="second") >= waited + 0.25
    first.go()
    first.end()
    assert second.line() == "held"
    page = wait_for_page(served, lambda p: p.value("allot_tenants", state="queued") == 0)
    assert page.value("allot_tenant_memory_wait_seconds", tenant="second") is None
    assert page.value("allot_tenant_memory_waited_seconds_total", tenant="second") >= 0.3
    assert page.value("allot_memory_waited_seconds_total") >= 0.3
    assert page.value("allot_memory_waits_total") == 2
    assert page.value("allot_memory_waits_ended_total", outcome="granted") == 2
    assert page.value("allot_tenant_memory_granted_bytes", tenant="second") == 101 * GIB
    second.go()
    second.end()


def test_an_interrupted_wait_is_counted(machine, python, served):
    first = hold(machine, python, "first", 100 << 10, "--on-full", "wait")
    assert first.line() == "held"
    second = hold(machine, python, "second", 100 << 10, "--on-full", "wait")
    machine.wait_for_tenant("second", lambda t: t["state"] == "queued")
    second.process.send_signal(signal.SIGINT)
    second.process.wait(timeout=20)
    page = wait_for_page(served, lambda p: p.value("allot_tenant_state", tenant="second",
                                                   state="queued") is None)
    ended = {labels["outcome"]: value
             for labels, value in page.all("allot_memory_waits_ended_total")}
    assert ended.pop("granted") == 1 and sum(ended.values()) == 1, ended
    first.go()
    first.end()


def test_moves_of_swapped_memory_are_counted(machine, python, tmp_path):
    machine_served = start_servers(machine, tmp_path, "metrics_listen = 127.0.0.1:0\n",
                                   f"memory = {2560 * MIB}\n")
    address = address_in(machine_served)
    swap = ("--on-full", "swap", "--swap-arena", "1024MiB")
    first = hold(machine, python, "first", 1000, *swap, memory="1600MiB")
    assert first.line() == "held"
    assert scrape(address).value("allot_tenant_swap_arena_bytes", tenant="first") == GIB
    second = hold(machine, python, "second", 1000, *swap, memory="1600MiB")
    assert second.line() == "held"
    # The daemon's next sample counts it.
    page = wait_for_page(address, lambda p: p.value("allot_tenant_swap_moves_total", tenant="first",
                                                    direction="out"))
    assert page.label("allot_tenant_swap_state", "state", tenant="first") == "out"
    assert page.label("allot_tenant_state", "state", tenant="first") == "swapped"
    assert page.value("allot_tenant_swapped_bytes", tenant="first") == 1000 * MIB
    assert page.value("allot_tenant_swap_moves_total", tenant="second", direction="out") == 0
    assert page.value("allot_swap_moves_total", direction="out") == 1
    assert page.value("allot_device_swapped_out_bytes_total") == 1000 * MIB
    assert page.value("allot_tenant_swap_stays_bytes", tenant="first", reason="contexts") == 518 * MIB
    assert page.value("allot_swap_arena_reserved_bytes") == 2 * GIB
    second.go()
    second.end()
    # There is room again: the memory moves back, and the figures of the ended tenant remain in the sum.
    page = wait_for_page(address, lambda p: p.value("allot_tenant_swap_moves_total", tenant="first",
                                                    direction="back") == 1)
    assert page.value("allot_swap_moves_total", direction="back") == 1
    first.go()
    first.end()


def test_values_under_hamis_names_agree(machine, python, served):
    holder = hold(machine, python, "holds", 2000)
    assert holder.line() == "held"
    load = machine.start("--name", "works", "--memory", "1GiB", "--", *machine.load("--seconds", 60))
    machine.wait_for_tenant("works", lambda t: t["state"] == "running")
    page = wait_for_page(served, lambda p: p.value(
        "hami_container_last_kernel_elapsed_seconds", container="works") is not None)
    card, = machine.ps()["devices"]
    labels = {"namespace": "", "pod": "", "container": "holds", "vdevice_index": "0",
              "device_uuid": card["uuid"]}
    assert page.all("hami_vgpu_memory_limit_bytes", container="holds") == \
        [(labels, page.value("allot_tenant_memory_quota_bytes", tenant="holds"))]
    used = page.value("allot_tenant_memory_used_bytes", tenant="holds")
    for name in ("hami_vgpu_memory_used_bytes", "hami_container_device_memory_bytes"):
        assert page.value(name, **labels) == used > 2000 * MIB
    context, module, buffers = (page.value(f"hami_vgpu_memory_{part}_bytes", **labels)
                                for part in ("context", "module", "buffer"))
    assert context + module + buffers == used
    assert context == card["context_bytes"] and 2000 * MIB <= buffers < 2004 * MIB
    assert page.value("hami_host_gpu_memory_used_bytes", device_index="0", device_type=card["name"],
                      device_uuid=card["uuid"]) == page.value("allot_device_memory_used_bytes")
    # HAMi's ratios are percent.
    busy = wait_for_page(served, lambda p: p.value("hami_host_gpu_utilization_ratio") > 20)
    assert busy.value("hami_host_gpu_utilization_ratio") == pytest.approx(
        100 * busy.value("allot_device_busy_ratio"))
    assert busy.value("hami_container_device_utilization_ratio", container="works") == \
        pytest.approx(100 * busy.value("allot_tenant_cores_got_ratio", tenant="works"))
    assert page.value("hami_container_last_kernel_elapsed_seconds", container="works") < 10
    assert page.value("hami_container_last_kernel_elapsed_seconds", container="holds") is None
    assert not page.all("container_gpu_utilization")
    load.terminate()
    holder.go()
    holder.end()


def test_gpu_managers_names_are_optional(machine2, tmp_path):
    log = start_servers(machine2, tmp_path, "metrics_listen = 127.0.0.1:0\n"
                        "metrics_names = gpu-manager\n", card="[gpu]\n")
    tenant = machine2.start("--name", "two", "--gpu", "0,1", "--memory", "4GiB", "--cores", "30",
                            "--", "sleep", "60")
    machine2.wait_for_tenant("two")
    page = scrape(address_in(log))
    pod = {"pod_name": "", "namespace": "", "node": os.uname().nodename, "container_name": "two"}
    assert page.all("container_request_gpu_utilization") == [({**pod, "req_of_gpu": "total"}, 0.6)]
    assert page.all("container_request_gpu_memory") == \
        [({**pod, "req_of_gpu_memory": "total"}, 8192)]
    assert sorted(labels["gpu"] for labels, _ in page.all("container_gpu_utilization")) == \
        ["gpu0", "gpu1", "total"]
    assert {value for _, value in page.all("container_gpu_memory_total")} == {0}
    assert not page.all("hami_vgpu_memory_used_bytes")
    tenant.terminate()


def test_fragmentation_and_failed_allocations(machine2, tmp_path):
    log = start_servers(machine2, tmp_path, "metrics_listen = 127.0.0.1:0\n", card="[gpu]\n")
    address = address_in(log)
    assert scrape(address).value("allot_fragmentation_ratio", resource="cores") == 0
    tenant = machine2.start("--name", "a", "--gpu", "1", "--memory", "4GiB", "--cores", "60", "--",
                            "sleep", "60")
    machine2.wait_for_tenant("a")
    for options in (["--name", "a"], ["--memory", "400GiB"]):
        assert machine2.run(*options, "--", "true").returncode == 125
    page = wait_for_page(address, lambda p: p.value(
        "allot_allocation_failures_total", reason="no_room") == 1)
    # Of 140 unpromised points, 40 are on a GPU that is partly promised.
    assert page.value("allot_fragmentation_ratio", resource="cores") == pytest.approx(40 / 140)
    assert page.value("allot_fragmentation_ratio", resource="memory") == pytest.approx(0.49, abs=0.02)
    assert page.value("allot_allocation_failures_total", reason="name_in_use") == 1
    tenant.terminate()


def test_use_by_namespace_outlives_its_tenants(machine, python, served):
    holder = hold(machine, python, "holds", 2000)
    assert holder.line() == "held"
    version = machine.allot("--version").stdout.split()[1]
    page = wait_for_page(served, lambda p: (p.value(
        "allot_namespace_memory_gib_seconds_total", namespace="") or 0) > 1)
    assert page.value("allot_tenant_library_processes", tenant="holds", version=version) == 1
    assert machine.run("--name", "works", "--memory", "1GiB", "--",
                       *machine.load("--seconds", 2)).returncode == 0
    holder.go()
    holder.end()
    page = wait_for_page(served, lambda p: not p.all("allot_tenant_info"))
    assert page.value("allot_namespace_gpu_seconds_total", namespace="") == pytest.approx(
        page.value("allot_device_gpu_seconds_total"), abs=0.1)
    assert page.value("allot_namespace_gpu_seconds_total", namespace="") > 0.5


@pytest.mark.skipif(not find_promtool(), reason="promtool is missing; scripts/test gets it")
def test_promtool_on_gpu_managers_names(machine, tmp_path):
    """gpu-manager gives one gauge a name that ends like a counter's. That is promtool's only complaint."""
    address = listen(machine, tmp_path, "metrics_names = hami,gpu-manager\n")
    tenant = machine.start("--name", "a", "--memory", "1GiB", "--", "sleep", "60")
    machine.wait_for_tenant("a")
    _, _, text = request(address)
    done = subprocess.run([find_promtool(), "check", "metrics"], input=text, check=False,
                          capture_output=True, text=True)
    complaints = (done.stdout + done.stderr).splitlines()
    assert len(complaints) == 1 and complaints[0].startswith("container_gpu_memory_total non-counter"), done
    tenant.terminate()


@pytest.mark.skipif(not find_promtool(), reason="promtool is missing; scripts/test gets it")
def test_promtool_reports_nothing(machine, python, served):
    tenants = [hold(machine, python, "fails", 100, "--elastic", "on", "--cores", "10"),
               hold(machine, python, "waits", 100, "--on-full", "wait"),
               hold(machine, python, "swaps", 100, "--on-full", "swap")]
    for tenant in tenants:
        assert tenant.line() == "held"
    _, _, text = request(served)
    done = subprocess.run([find_promtool(), "check", "metrics"], input=text, check=False,
                          capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr and not done.stdout, done
    for tenant in tenants:
        tenant.go()
        tenant.end()


def test_every_metric_is_documented():
    """docs/reference/metrics.md ends with what `allotd --list-metrics` prints."""
    done = subprocess.run([BUILD / "allotd", "--list-metrics"], capture_output=True, text=True,
                          check=True)
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    assert "`hami_vgpu_memory_used_bytes`" in page and "`container_gpu_utilization`" in page
    _, mark, table = page.partition("<!-- allotd --list-metrics -->\n")
    assert mark and table == done.stdout, "docs/reference/metrics.md: see CONTRIBUTING.md for how it is made"


def test_types_match_names(served):
    page = scrape(served)
    assert len(page.types) > 20
    for name, kind in page.types.items():
        assert kind == ("counter" if name.endswith("_total") else "gauge"), name


# ---- access ----

def test_paths_and_methods(served):
    assert request(served, "/healthz")[::2] == (200, "ok\n")
    assert request(served, "/readyz")[::2] == (200, "ready\n")
    for path in ("/", "/metrics/", "/metricsx", "/../metrics", "/healthz/x", "//metrics"):
        assert request(served, path)[0] == 404, path
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "NONSENSE"):
        status, headers, _ = request(served, method=method)
        assert status == 405 and headers["Allow"] == "GET, HEAD", method
    assert request(served, "/none", method="POST", body="x" * 100000)[0] == 404
    status, headers, text = request(served, method="HEAD")
    assert status == 200 and int(headers["Content-Length"]) > 1000 and text == ""
    assert request(served, "/metrics?name=x")[0] == 200


def test_token_is_required_and_reread(machine, tmp_path):
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    address = listen(machine, tmp_path, f"metrics_token_file = {file}\n")

    def status(authorization=None, path="/metrics"):
        headers = {"Authorization": authorization} if authorization else {}
        return request(address, path, headers=headers)[0]

    assert status(f"Bearer {TOKEN}") == 200
    for wrong in (None, "Bearer", "Bearer x", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}",
                  f"Basic {TOKEN}", TOKEN, f"Bearer {'x' * 5000}"):
        assert status(wrong) == 401, wrong
    assert request(address)[1]["WWW-Authenticate"].startswith("Bearer ")
    assert "allot_" not in request(address)[2]
    assert request(address, method="POST")[0] == 405
    # Health checks need no token, and reveal nothing.
    assert status(path="/healthz") == 200 and status(path="/readyz") == 200
    assert status(path="/none") == 404
    # A new token takes effect at once. Without the file every request is refused, and the log says so once.
    file.write_text("quite-another-token")
    assert status(f"Bearer {TOKEN}") == 401
    assert status("Bearer quite-another-token") == 200
    file.unlink()
    assert status("Bearer quite-another-token") == 503
    assert status("Bearer quite-another-token") == 503
    log = (machine.run_dir / "allotd.log").read_text()
    assert log.count(f"metrics_token_file: {file}: No such file") == 1, log


def test_a_unix_socket(machine, tmp_path):
    path = machine.run_dir / "metrics.sock"
    start_servers(machine, tmp_path, f"metrics_listen = unix:{path}\n")
    assert scrape(f"unix:{path}").value("allot_device_memory_bytes") > GIB
    assert path.stat().st_mode & 0o777 == 0o600
    # A client whose own socket has the longest name possible.
    client = socket.socket(socket.AF_UNIX)
    client.bind(str(tmp_path / "c").ljust(107, "x"))
    client.connect(str(path))
    client.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    client.settimeout(10)
    assert client.recv(4096).startswith(b"HTTP/1.1 200 ")
    client.close()
    daemon, = [pid for pid, line in machine.servers().items() if "/allotd " in line]
    os.kill(daemon, signal.SIGTERM)
    wait_until(lambda: not path.exists(), what="the end of the socket")


def test_ipv6(machine, tmp_path):
    try:
        socket.socket(socket.AF_INET6).bind(("::1", 0))
    except OSError as error:
        pytest.skip(f"no IPv6 here: {error}")
    log = start_servers(machine, tmp_path, "metrics_listen = [::1]:0\n")
    assert address_in(log).startswith("[::1]:")
    assert scrape(address_in(log)).value("allot_device_memory_bytes") > GIB


# ---- start ----

def start_fails(machine, tmp_path, settings, messages):
    """Checks that a daemon with these settings ends, and that its error contains all of the messages."""
    with pytest.raises(AssertionError) as failure:
        start_servers(machine, tmp_path, settings)
    assert all(part in str(failure.value) for part in messages), failure.value
    wait_until(lambda: not [line for line in machine.servers().values() if "/allotd " in line],
               what="the end of the daemon")


def test_a_port_in_use_prevents_the_start(machine, tmp_path):
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    address = "127.0.0.1:%d" % taken.getsockname()[1]
    start_fails(machine, tmp_path, f"metrics_listen = {address}\n",
                [f"metrics_listen: {address}: Address already in use"])
    taken.close()


def test_a_file_that_is_not_a_socket_is_kept(machine, tmp_path):
    file = tmp_path / "precious"
    file.write_text("kept")
    start_fails(machine, tmp_path, f"metrics_listen = unix:{file}\n", [f"{file}", "is not a socket"])
    assert file.read_text() == "kept"


@pytest.mark.parametrize("settings, messages", [
    ("metrics_listen = 0.0.0.0:0\n",
     ["'0.0.0.0:0' can be reached from other machines", "metrics_token_file", "metrics_open = on"]),
    ("metrics_listen = localhost:9400\n", ["settings:1: metrics_listen: 'localhost:9400'",
                                           "127.0.0.1:9400"]),
    ("metrics_token_file = token\n", ["'token'", "full path"]),
    ("metrics_listen = 127.0.0.1:0\nmetrics_token_file = /nowhere/token\n",
     ["metrics_token_file: /nowhere/token: No such file"]),
    ("metrics_listen = 127.0.0.1:0\nmetrics_tls_key = /nowhere/key\n",
     ["metrics_tls_certificate: must be set too, since metrics_tls_key is set"]),
    ("metrics_listen = 127.0.0.1:0\nmetrics_tls_key = /nowhere/key\nmetrics_tls_certificate = /nowhere/crt\n",
     ["/nowhere/crt: No such file"]),
    ("metrics_listen = 127.0.0.1:0\nmetrics_tls_key = /etc/passwd\nmetrics_tls_certificate = /etc/passwd\n",
     ["/etc/passwd: must be a PEM file"]),
], ids=["open to all", "a name", "a relative path", "no such token", "a key alone", "no such certificate",
        "no PEM file"])
def test_wrong_settings_prevent_the_start(machine, tmp_path, settings, messages):
    start_fails(machine, tmp_path, settings, messages)


def test_metrics_open_allows_any_client(machine, tmp_path):
    log = start_servers(machine, tmp_path, "metrics_listen = 0.0.0.0:0\nmetrics_open = on\n")
    port = address_in(log).rpartition(":")[2]
    assert scrape(f"127.0.0.1:{port}").value("allot_device_memory_bytes") > GIB


@pytest.mark.parametrize("kind", ["127.0.0.1", "unix"])
def test_the_next_daemon_serves_at_the_same_address(machine, tmp_path, kind):
    free = socket.socket()
    free.bind(("127.0.0.1", 0))
    address = (f"unix:{tmp_path}/m" if kind == "unix" else "127.0.0.1:%d" % free.getsockname()[1])
    free.close()
    settings = tmp_path / "settings"
    settings.write_text(f"metrics_listen = {address}\n")
    # It starts a daemon, and the next one after that daemon was killed.
    tenant = machine.start("--name", "a", "--memory", "1GiB", "--", "sleep", "60",
                           environment={"ALLOT_CONFIG": str(settings)})
    machine.wait_for_tenant("a")
    before = scrape(address)
    (daemon,) = [pid for pid, line in machine.servers().items() if "/allotd " in line]
    kill_servers(daemon)

    def serves_again():
        try:
            page = scrape(address)
        except OSError:
            return None
        return page if page.value("allot_tenants", state="starting") == 1 else None

    page = wait_until(serves_again, what="the next daemon")
    started = "allot_daemon_start_time_seconds"
    assert page.value(started) > before.value(started)
    assert page.value("allot_tenant_memory_quota_bytes", tenant="a") == GIB
    tenant.terminate()


def test_off_by_default(machine, tmp_path):
    log = start_servers(machine, tmp_path, "")
    assert "metrics" not in log
    daemon, = [pid for pid, line in machine.servers().items() if "/allotd " in line]
    # The HTTP library is not even loaded.
    assert "libmicrohttpd" not in pathlib.Path(f"/proc/{daemon}/maps").read_text()


# ---- misbehaving clients ----

def test_slow_clients_are_dropped_and_delay_no_one(machine, served):
    host, port = served.split(":")

    def connect(text):
        client = socket.create_connection((host, int(port)), timeout=60)
        client.sendall(text)
        return client

    slow = [connect(b""), connect(b"GET /metr"), connect(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: ")]
    # A client that sends a byte at a time is slow too.
    drip = connect(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: ")
    for _ in range(3):
        drip.sendall(b"x")
        assert request(served, "/healthz")[0] == 200
        assert machine.ps()["devices"]
    assert not select.select(slow, [], [], 0)[0], "a slow client was dropped before others were answered"
    for client in slow:
        assert client.recv(4096) == b""
    with pytest.raises(OSError):
        for _ in range(1000):
            drip.sendall(b"x")
            time.sleep(0.05)
    for client in (*slow, drip):
        client.close()


def test_more_clients_than_connections(machine, served):
    """Clients that hold all connections delay others only until the idle connections are dropped."""
    host, port = served.split(":")
    many = [socket.create_connection((host, int(port))) for _ in range(45)]
    assert machine.ps()["devices"]
    assert request(served, "/healthz")[0] == 200
    for client in many:
        client.close()
    assert request(served, "/healthz")[0] == 200


def test_at_most_ten_pages_a_second_are_made(served):
    begun = time.monotonic()
    for _ in range(200):
        page = scrape(served)
    elapsed = time.monotonic() - begun
    assert page.value("allot_metrics_pages_total") <= 10 * elapsed + 1


def test_connected_clients_keep_no_daemon_alive(tmp_path_factory, tmp_path):
    """A private daemon ends after its last tenant, even while a metrics client is connected."""
    machine = make_machine(tmp_path_factory, "h200")
    settings = tmp_path / "settings"
    settings.write_text("metrics_listen = 127.0.0.1:0\n")
    tenant = machine.start("--", "sleep", "60", environment={"ALLOT_CONFIG": str(settings)})
    log = machine.run_dir / "allotd.log"
    wait_until(lambda: log.exists() and "made by" in log.read_text(), what="the tenant")
    host, port = address_in(log.read_text()).split(":")
    client = socket.create_connection((host, int(port)))
    tenant.terminate()
    machine.wait_until_gone()
    client.settimeout(10)
    assert client.recv(1) == b""
    client.close()
    machine.clean()
