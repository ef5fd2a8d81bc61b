"""allotd's device plugin for the kubelet: a system daemon on simulated cards, and a test kubelet that uses gRPC's library."""

import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import threading
import time

import pytest
from machines import BUILD, wait_until
from held import can_mount, compile_c, link_with_driver
from kubelet import PATIENCE, Kubelet, Plugin, field, grpc, names
from scrape import Page, request
from sim_peers import start_sim  # noqa: F401
from test_freezer_runc import RuncContainer, why_not_runc

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the system daemon is root's")

MIB = 1 << 20
ENDPOINT = "allot-gpu.sock"


class Node:
    """A system daemon with its card, kubelet's directory and state in a directory of the test's."""

    def __init__(self, sim, directory, **settings):
        self.sim = sim
        self.directory = directory
        self.run_dir = directory / "run"
        self.plugins = directory / "plugins"
        self.log = directory / "log"
        self.config = directory / "allotd.conf"
        self.metrics = f"unix:{directory}/metrics.sock"
        settings = {"kube_plugin": "on", "kube_plugin_dir": self.plugins, "log_level": "debug",
                    "state_dir": directory / "state", "metrics_listen": self.metrics,
                    "watch_tasks": "off", **settings}
        self.config.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
        self.daemon = None
        self.within = ()  # a command that runs the daemon

    def command(self):
        return [*self.within, BUILD / "allotd", "--foreground", "--run-dir", self.run_dir, "--config", self.config,
                "--sim-socket", self.sim.socket, "--nvml", BUILD / "sim" / "libnvidia-ml.so.1"]

    def start(self):
        with open(self.log, "a") as log:
            self.daemon = subprocess.Popen(self.command(), stderr=log, stdin=subprocess.DEVNULL)
        wait_until(self.answers, PATIENCE, "the daemon")
        return self

    def answers(self):
        assert self.daemon.poll() is None, self.log.read_text()
        try:
            return self.ask("hello")
        except OSError:
            return None

    def ask(self, op, **more):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(self.run_dir / "allotd.sock"))
            s.sendall(json.dumps({"version": 1, "op": op, **more}).encode() + b"\n")
            return json.loads(s.makefile().readline())

    def listed(self):
        return self.ask("list")

    def uuids(self):
        return [device["uuid"] for device in self.listed()["devices"]]

    def tenants(self):
        return self.listed()["tenants"]

    def page(self):
        return Page(request(self.metrics)[2])

    def end(self, how=signal.SIGTERM):
        if self.daemon:
            self.daemon.send_signal(how)
            self.daemon.wait(timeout=PATIENCE)
        self.daemon = None


@pytest.fixture
def make_node(start_sim, tmp_path_factory):  # noqa: F811
    directory = tmp_path_factory.mktemp("p")
    made, kubelets = [], []

    def make(spec="h200x2", kubelet=True, **settings):
        node = Node(start_sim(spec), directory, **settings)
        made.append(node)
        node.plugins.mkdir(exist_ok=True)
        node.kubelet = Kubelet(node.plugins)
        kubelets.append(node.kubelet)
        if kubelet:
            node.kubelet.start()
        return node.start()

    yield make
    for kubelet in kubelets:
        kubelet.stop()
    for node in made:
        node.end(signal.SIGKILL)


def ids(uuid, *numbers):
    return [f"{uuid}-{number}" for number in numbers]


# ---- registration ----

def test_registers_and_is_called_back(make_node):
    node = make_node()
    plugin = node.kubelet.wait_registered()
    (_, first), = node.kubelet.registrations
    assert first[1] == b"v1beta1" and first[2] == ENDPOINT.encode()
    assert first[3] == b"nvidia.com/gpu" and first["options"] == {2: 1}
    devices = node.kubelet.watch.last
    assert sorted(devices) == sorted(
        name for uuid in node.uuids() for name in ids(uuid, *range(10)))
    assert set(devices.values()) == {"Healthy"} and all(len(name) <= 63 for name in devices)
    assert plugin.options() == {2: 1}
    assert (node.plugins / ENDPOINT).stat().st_mode & 0o777 == 0o600
    wait_until(lambda: node.page().value("allot_plugin_registered") == 1, what="the metric")
    page = node.page()
    assert page.value("allot_plugin_watchers") == 1
    assert page.value("allot_plugin_devices") == page.value("allot_plugin_devices_healthy") == 20
    # A daemon that ends takes its socket along.
    node.end()
    assert not (node.plugins / ENDPOINT).exists()
    wait_until(lambda: node.kubelet.watch.error, what="the stream's end")


def test_another_program_serves_the_socket(make_node):
    """It is left alone, which is said once as a warning; when it has gone the plugin registers."""
    node = make_node(log_level="info")
    node.kubelet.wait_registered()
    path = node.plugins / ENDPOINT
    with socket.socket(socket.AF_UNIX) as other:
        path.unlink()
        other.bind(str(path))
        other.listen()
        wait_until(lambda: "another program listens on this socket" in node.log.read_text(), PATIENCE, "the warning")
        inode = path.stat().st_ino
        time.sleep(2.5)
        assert path.stat().st_ino == inode and node.log.read_text().count("another program listens on this socket") == 1
    node.kubelet.wait_registered(2)


def test_every_kubelet_that_starts_is_told(make_node):
    """Also one that comes later, one whose socket was left by the one before, and one that removes ours."""
    node = make_node(kubelet=False)
    node.kubelet.start()
    node.kubelet.wait_registered()
    took = []
    for again in range(2, 8):
        node.kubelet.stop()
        if again % 2:
            node.kubelet.path.unlink(missing_ok=True)
        node.kubelet.start()
        node.kubelet.wait_registered(again)
        took.append(node.kubelet.registrations[-1][0] - node.kubelet.started)
    print(f"registered again after {1000 * statistics.median(took):.1f} ms, "
          f"at most {1000 * max(took):.1f}")
    assert statistics.median(took) < 0.1
    assert not node.kubelet.errors
    wait_until(lambda: node.page().value("allot_plugin_registered") == 1, what="the metric")


def test_a_kubelet_that_refuses_is_asked_again(make_node):
    node = make_node(kubelet=False)
    node.kubelet.refusal = "resource is taken, 100 %"
    node.kubelet.start()
    wait_until(lambda: node.page().value("allot_plugin_registration_failures_total") >= 3,
               PATIENCE, "some refusals")
    assert node.page().value("allot_plugin_registered") == 0
    # Said once, though tried again and again.
    assert node.log.read_text().count("the kubelet refuses the device plugin: resource is taken, 100 %") == 1
    node.kubelet.refusal = None
    node.kubelet.wait_registered()


def test_a_plugin_that_nobody_watches_registers_again(make_node):
    node = make_node()
    node.kubelet.wait_registered()
    node.kubelet.watch.cancel()
    node.kubelet.wait_registered(2)
    # So it does when somebody removes its socket.
    (node.plugins / ENDPOINT).unlink()
    node.kubelet.wait_registered(3)
    assert node.kubelet.plugin.options() == {2: 1}


def test_the_directory_comes_and_goes(make_node):
    node = make_node(kubelet=False, kube_plugin_dir="/nowhere")
    node.end()
    node.plugins.rmdir()
    node.config.write_text(node.config.read_text().replace("/nowhere", str(node.plugins)))
    node.start()
    wait_until(lambda: f"{node.plugins}: can't be watched for the kubelet's socket: No such file" in node.log.read_text(), what="a word")
    node.plugins.mkdir()
    node.kubelet.start()
    node.kubelet.wait_registered()
    node.kubelet.stop()
    node.plugins.rename(node.directory / "away")
    wait_until(lambda: node.page().value("allot_plugin_registered") == 0, what="to be noticed")
    node.plugins.mkdir()
    node.kubelet.start()
    node.kubelet.wait_registered(2)


def replace_by_symlink(node):
    """As volumes of ConfigMaps and Secrets are renewed: the name leads elsewhere from one moment to the next."""
    before, after = node.directory / "before", node.directory / "after"
    node.plugins.rename(before)
    node.plugins.symlink_to(before)
    node.kubelet.start()
    node.kubelet.wait_registered(len(node.kubelet.registrations) + 1)
    node.kubelet.stop()
    after.mkdir()
    (node.directory / "next").symlink_to(after)
    (node.directory / "next").rename(node.plugins)


def replace_by_directory(node):
    """The plugin's own socket pins the removed one."""
    shutil.rmtree(node.plugins)
    node.plugins.mkdir()


@pytest.mark.parametrize("replace", [replace_by_directory, replace_by_symlink])
def test_the_directory_is_replaced(make_node, replace):
    node = make_node()
    node.kubelet.wait_registered()
    node.kubelet.stop()
    replace(node)
    registrations = len(node.kubelet.registrations)
    node.kubelet.start()
    node.kubelet.wait_registered(registrations + 1)
    assert node.kubelet.plugin.options() == {2: 1}


def test_a_mounted_directory_is_replaced(make_node):
    """As the container of a DaemonSet has it: only a new mount leads to the kubelet's new directory."""
    if not can_mount():
        pytest.skip("no mount namespace can be made here")
    node = make_node(kubelet=False)
    node.end()
    mounted = node.directory / "mounted"
    mounted.mkdir()
    node.config.write_text(node.config.read_text().replace(str(node.plugins), str(mounted)))
    node.within = ("unshare", "--mount", "sh", "-c", f'mount --bind {node.plugins} {mounted} && exec "$@"', "sh")
    node.kubelet.start()
    node.start()
    node.kubelet.wait_registered()
    node.kubelet.stop()
    replace_by_directory(node)
    assert node.daemon.wait(timeout=PATIENCE) == 0
    assert f"{mounted} was removed on the host" in node.log.read_text()
    node.kubelet.start()
    node.start()
    node.kubelet.wait_registered(2)


def daemon_refuses(node, *arguments, **settings):
    """Why it does not start with these settings."""
    node.end()
    lines = {"kube_plugin": "on", "kube_plugin_dir": node.plugins, **settings}
    node.config.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    done = subprocess.run([*node.command(), *arguments], capture_output=True, text=True,
                          timeout=20, check=False)
    assert done.returncode != 0
    return done.stderr


def test_settings_that_can_not_be(make_node):
    node = make_node(kubelet=False)
    long = "/" + "x" * 92
    assert f"'{long}': must be at most" in daemon_refuses(node, kube_plugin_dir=long)
    assert "'plugins': must be a full path" in daemon_refuses(node, kube_plugin_dir="plugins")
    assert "'gpu': must be a domain and a name" in daemon_refuses(node, kube_resource="gpu")
    assert "a whole number from 1 to 100" in daemon_refuses(node, kube_slices=101)
    assert "must be soft or hard" in daemon_refuses(node, kube_slice_limit="firm")
    assert "must be off in a daemon of one user" in daemon_refuses(node, "--private")
    theirs = {"kube_vocabulary": "gpu-manager", "kube_api": "/nowhere"}
    assert "gpu-manager: kube_api must not be off" in daemon_refuses(node, kube_vocabulary="gpu-manager")
    assert "kube_core_resource: 'core': must be a domain" in daemon_refuses(node, **theirs, kube_core_resource="core")
    assert "kube_memory_resource: 'vcuda-core': must be another name than kube_core_resource's" in \
        daemon_refuses(node, **theirs, kube_memory_resource="a.b/vcuda-core")
    assert "must be slices, hami or gpu-manager" in daemon_refuses(node, kube_vocabulary="other")


def test_devices_name_their_numa_node(make_node):
    """As the driver has it, for the kubelet's topology manager; a card of no known place names none."""
    node = make_node("dgx-a100", kube_slices=2)
    wait_until(lambda: node.kubelet.watch and node.kubelet.watch.last, PATIENCE, "the devices")
    topology = node.ask("topology")["devices"]
    assert len({device["numa"] for device in topology}) > 1
    assert node.kubelet.watch.numa == {f"{device['uuid']}-{number}": [device["numa"]]
                                       for device in topology for number in range(2)}


def test_whole_cards_alone(make_node):
    """By gpu-manager's name of the setting."""
    node = make_node(kube_slices=7, **{"share-mode": "false"})
    wait_until(lambda: node.kubelet.watch and node.kubelet.watch.last, PATIENCE, "the devices")
    assert sorted(node.kubelet.watch.last) == sorted(f"{uuid}-0" for uuid in node.uuids())
    node.kubelet.plugin.allocate(ids(node.uuids()[0], 0))
    (tenant,) = node.tenants()
    assert tenant["devices"][0]["cores_pct"] == 100


# ---- health ----

def test_a_lost_card_is_unhealthy_until_it_is_back(make_node):
    node = make_node()
    plugin = node.kubelet.wait_registered()
    first, second = node.uuids()
    others = [plugin.watch() for _ in range(20)]
    wait_until(lambda: all(watch.lists for watch in others), PATIENCE, "their lists")
    before = time.monotonic()
    node.sim.ctl("lose", "0")

    def unhealthy(watch):
        return {name.rpartition("-")[0] for name, health in watch.last.items()
                if health == "Unhealthy"}

    wait_until(lambda: unhealthy(node.kubelet.watch) == {first}, PATIENCE, "the loss")
    print(f"a lost card is unhealthy after {time.monotonic() - before:.1f} s")
    wait_until(lambda: all(unhealthy(watch) == {first} for watch in others), PATIENCE, "all of them")
    assert len(node.kubelet.watch.last) == 20
    error = plugin.refused(ids(first, 0))
    assert error.code() == grpc.StatusCode.UNAVAILABLE and f"{first}: GPU 0 is not healthy" in error.details()
    assert node.page().value("allot_plugin_devices_healthy") == 10
    node.sim.ctl("heal", "0")
    wait_until(lambda: unhealthy(node.kubelet.watch) == set(), PATIENCE, "the return")
    for watch in others:
        wait_until(lambda: unhealthy(watch) == set(), PATIENCE, "the return, for all")
        watch.cancel()
    wait_until(lambda: node.page().value("allot_plugin_watchers") == 1, what="their leaving")
    assert plugin.allocate(ids(first, 0)) and second


def test_a_card_with_an_error_is_unhealthy(make_node):
    """Xid 48 is memory that can't be corrected, 31 an address that a program made up."""
    node = make_node()
    node.kubelet.wait_registered()
    _, second = node.uuids()

    def unhealthy():
        return {name.rpartition("-")[0] for name, health in node.kubelet.watch.last.items()
                if health == "Unhealthy"}

    node.sim.ctl("xid", "0", "31")
    node.sim.ctl("xid", "1", "48")
    wait_until(lambda: unhealthy() == {second}, PATIENCE, "the error")
    assert "GPU 1: Xid 48" in node.log.read_text()
    # It answers, and is not taken back for that; somebody who has seen to it says so.
    time.sleep(3.5)
    assert unhealthy() == {second}
    assert node.ask("cordon", index=1, cordoned=False)["ok"]
    wait_until(lambda: not unhealthy(), PATIENCE, "its return")
    # A card that somebody has cordoned is offered to nobody either.
    assert node.ask("cordon", index=0)["ok"]
    wait_until(lambda: len(unhealthy()) == 1 and unhealthy() != {second}, PATIENCE, "the cordon")
    assert node.ask("cordon", index=0, cordoned=False)["ok"]
    wait_until(lambda: not unhealthy(), PATIENCE, "its end")


# ---- preference ----

def test_preference(make_node):
    node = make_node()
    plugin = node.kubelet.wait_registered()
    first, second = node.uuids()
    everything = ids(first, *range(10)) + ids(second, 0, 1, 2)
    random.shuffle(everything)
    assert sorted(plugin.prefer(everything, 2)) == ids(second, 0, 1)
    assert sorted(plugin.prefer(everything, 4)) == ids(first, 0, 1, 2, 3)
    assert sorted(plugin.prefer(everything, 2, ids(first, 7))) == ids(first, 0, 7)
    assert len(plugin.prefer(everything, 13)) == 13
    for available, size, must, word in ((everything, 14, [], "asks for 14 devices"),
                                        (["GPU-x-0"], 1, [], "'GPU-x-0' is not one of allotd's"),
                                        (ids(first, 0), 1, ids(first, 1), "must be included")):
        with pytest.raises(grpc.RpcError) as raised:
            plugin.prefer(available, size, must)
        assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert word in raised.value.details()


# ---- allocation ----

def devices_of(tenant):
    return {device["index"]: device for device in tenant["devices"]}


def test_what_is_allocated(make_node):
    node = make_node()
    plugin = node.kubelet.wait_registered()
    first, second = node.uuids()
    card_bytes = node.listed()["devices"][0]["memory_bytes"]
    one, = plugin.allocate(ids(first, 3))
    tenant, = node.tenants()
    device, = tenant["devices"]
    assert device["index"] == 0
    assert card_bytes / 10 - MIB < device["memory_quota_bytes"] <= card_bytes / 10
    assert device["cores_pct"] == 10 and device["cores_limit_pct"] == 100
    assert one.env and one.mounts
    assert all(os.path.exists(host) for _, host, _ in one.mounts)
    # Several of a card add up; of two cards, a quota on each; as the kubelet has it, in no order.
    chosen = ids(first, 9, 0) + ids(second, 5, 1, 2)
    random.shuffle(chosen)
    before, = plugin.allocate(chosen)
    both, = (t for t in node.tenants() if len(t["devices"]) == 2)
    of = devices_of(both)
    assert of[0]["cores_pct"] == 20 and of[1]["cores_pct"] == 30
    assert card_bytes * .3 - MIB < of[1]["memory_quota_bytes"] <= card_bytes * .3
    # The same again, as a pod's containers are given those of its init containers: what these were told stays true.
    random.shuffle(chosen)
    again, = plugin.allocate(chosen)
    assert again.mounts == before.mounts and again.env == before.env
    assert len(node.tenants()) == 2 and all(os.path.exists(host) for _, host, _ in before.mounts)
    # Also if the same call fails for another container.
    plugin.refused(chosen, ["GPU-none-0"])
    assert len(node.tenants()) == 2 and all(os.path.exists(host) for _, host, _ in before.mounts)
    # Also one of several, and with others.
    plugin.allocate(ids(first, 3, 0))
    assert sorted(len(t["devices"]) for t in node.tenants()) == [1]
    # All that there is.
    plugin.allocate(ids(first, *range(10)) + ids(second, *range(10)))
    tenant, = node.tenants()
    assert [d["cores_pct"] for d in tenant["devices"]] == [100, 100]
    plugin.call("PreStartContainer", names(1, ids(first, 1)))
    assert node.page().value("allot_plugin_allocations_total") == 5


def test_a_hard_limit_and_other_slices(make_node):
    node = make_node("h200", kube_slices=3, kube_slice_limit="hard", kube_resource="allot.example/third")
    plugin = node.kubelet.wait_registered()
    assert node.kubelet.registrations[0][1][2] == b"allot-third.sock"
    assert len(node.kubelet.watch.last) == 3
    plugin.allocate(ids(node.uuids()[0], 2))
    device = node.tenants()[0]["devices"][0]
    assert device["cores_pct"] == device["cores_limit_pct"] == 33.33


def test_a_refused_container_takes_nothing(make_node):
    node = make_node()
    plugin = node.kubelet.wait_registered()
    first = node.uuids()[0]
    for containers, word in (([[]], "the request names no devices"),
                             ([["GPU-x-0"]], "'GPU-x-0' is not one of allotd's"),
                             ([ids(first, 10)], "must be 0 to 9"),
                             ([[f"{first}-00"]], "must be 0 to 9"),
                             ([[first]], "is not one of allotd's"),
                             ([["x" * 5000]], "is not one of allotd's"),
                             ([ids(first, 1, 1)], "named twice"),
                             ([ids(first, 1), ids(first, 11)], "must be 0 to 9"),
                             ([[f"{first}-{i % 10}" for i in range(41)]], "more devices")):
        error = plugin.refused(*containers)
        assert error.code() == grpc.StatusCode.INVALID_ARGUMENT and word in error.details()
    assert node.tenants() == []
    with pytest.raises(grpc.RpcError) as raised:
        plugin.call("PreStartContainer", names(1, ["none"]))
    assert "'none' is not one of allotd's" in raised.value.details()
    assert node.page().value("allot_plugin_allocations_refused_total") == 9


def test_garbage(make_node):
    """Whatever comes, the kubelet is served."""
    node = make_node()
    plugin = node.kubelet.wait_registered()
    first = node.uuids()[0]
    rng = random.Random(20261122)
    good = field(1, names(1, ids(first, 1, 2)))
    for _ in range(200):
        message = bytearray(good)
        for _ in range(rng.randrange(1, 6)):
            message[rng.randrange(len(message))] = rng.randrange(256)
        for method in ("Allocate", "GetPreferredAllocation", "PreStartContainer"):
            try:
                plugin.call(method, bytes(message))
            except grpc.RpcError as error:
                assert error.code() in (grpc.StatusCode.INVALID_ARGUMENT,
                                        grpc.StatusCode.FAILED_PRECONDITION)
    with pytest.raises(grpc.RpcError) as raised:
        plugin.call("Allocate", bytes(1 << 20))
    assert raised.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    with pytest.raises(grpc.RpcError) as raised:
        plugin.call("Other")
    assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED
    for _ in range(50):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(node.plugins / ENDPOINT))
            s.sendall(rng.randbytes(rng.randrange(1, 3000)))
    old = Plugin(node.plugins / ENDPOINT, authority=f"{node.plugins}/{ENDPOINT}")
    assert old.options() == {2: 1}
    old.close()
    assert plugin.allocate(ids(first, 1))
    assert node.kubelet.watch.error is None


def test_many_at_a_time(make_node):
    node = make_node(kube_slices=100)
    plugin = node.kubelet.wait_registered()
    chosen = [[f"{uuid}-{number}"] for uuid in node.uuids() for number in range(0, 100, 2)]
    took, errors = [], []

    def allocate(part):
        for container in part:
            begun = time.monotonic()
            try:
                plugin.allocate(container)
            except grpc.RpcError as error:
                errors.append(error)
            took.append(time.monotonic() - begun)

    threads = [threading.Thread(target=allocate, args=(chosen[i::4],)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors and len(node.tenants()) == len(chosen) == len(took)
    page = node.page()
    mean = page.value("allot_plugin_allocate_seconds_total") / len(chosen)
    took.sort()
    print(f"Allocate, {len(chosen)} of 4 threads: {1000 * mean:.2f} ms in the daemon, "
          f"{1000 * took[len(took) // 2]:.1f} ms as seen, at most {1000 * took[-1]:.1f}")


def test_as_fast_with_a_thousand(make_node):
    """What an allocation costs does not grow with those that are there; of the daemon's own clock."""
    node = make_node("h200x15", kube_slices=100)
    plugin = node.kubelet.wait_registered()
    chosen = [[f"{uuid}-{number}"] for number in range(100) for uuid in node.uuids()]

    def allocate(part):
        before = node.page().value("allot_plugin_allocate_seconds_total") or 0
        took = []
        for container in part:
            begun = time.monotonic()
            plugin.allocate(container)
            took.append(1000 * (time.monotonic() - begun))
        mean = (node.page().value("allot_plugin_allocate_seconds_total") - before) / len(part)
        took.sort()
        print(f"Allocate, {len(part)} more: {1000 * mean:.2f} ms in the daemon, {took[len(took) // 2]:.2f} "
              f"as seen, 99th percentile {took[len(took) * 99 // 100]:.2f}, at most {took[-1]:.2f}")
        return mean

    few = allocate(chosen[:200])
    allocate(chosen[200:1000])
    many = allocate(chosen[1000:1200])
    assert len(node.tenants()) == 1200
    assert many < 5 * few


# ---- a container ----

def run_inside(node, directory, answer, command, number):
    """A container as the kubelet would have it made, by runc; and its process."""
    container = RuncContainer(directory, number, None, command, list(answer.env.items()), directory)
    path = container.bundle / "config.json"
    config = json.loads(path.read_text())
    for inside, outside, is_read_only in answer.mounts:
        config["mounts"].append({"destination": inside, "type": "bind", "source": outside,
                                 "options": ["rbind", "ro" if is_read_only else "rw"]})
    assert not answer.devices   # of simulated cards
    path.write_text(json.dumps(config))
    return container


def test_a_container_has_its_slices(make_node, tmp_path):
    reason = why_not_runc(tmp_path)
    if reason:
        pytest.skip(reason)
    node = make_node()
    plugin = node.kubelet.wait_registered()
    first, second = node.uuids()
    quota = compile_c(tmp_path / "quota", *link_with_driver(), "quota.c")
    answer, = plugin.allocate(ids(first, 4, 5) + ids(second, 0))
    terms = devices_of(node.tenants()[0])
    container = run_inside(node, tmp_path, answer, [quota, 8 << 10, 24 << 10],
                           f"{0xA110:x}".ljust(64, "0"))
    process = subprocess.Popen(["runc", "--root", container.state, "run", "--bundle",
                                container.bundle, container.id], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        lines = []
        while not lines or lines[-1] not in ("end\n", ""):
            lines.append(process.stdout.readline())
        assert lines[-1] == "end\n", process.stderr.read()
        seen = [line.split() for line in lines[:-1]]
        assert [int(words[3]) for words in seen] == \
            [terms[i]["memory_quota_bytes"] // MIB for i in (0, 1)]
        # 8 GiB fit each; 24 more are too much for two tenths of the one and one of the other.
        assert [(words[5], words[7]) for words in seen] == [("0", "2"), ("0", "2")]
        tenant, = node.tenants()
        assert tenant["devices"][0]["memory_used_bytes"] >= 8 << 30
        # As long as it lives, nobody else gets its devices; the error says who has them.
        error = plugin.refused(ids(second, 0))
        assert error.code() == grpc.StatusCode.FAILED_PRECONDITION
        assert f"{second}-0" in error.details() and tenant["name"] in error.details()
        # Over the daemon's death, too.
        node.end(signal.SIGKILL)
        node.start()
        node.kubelet.wait_registered(2)
        wait_until(lambda: [t["name"] for t in node.tenants() if t["devices"][0]["memory_used_bytes"]]
                   == [tenant["name"]], PATIENCE, "the adoption")
        assert node.kubelet.plugin.refused(ids(second, 0))
    finally:
        process.stdin.close()
        process.wait(timeout=20)
        container.remove()
    wait_until(lambda: node.tenants()[0]["devices"][0]["memory_used_bytes"] == 0, what="its end")
    assert node.kubelet.plugin.allocate(ids(second, 0))
