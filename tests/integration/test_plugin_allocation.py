"""allotd's device plugin for the kubelet: a system daemon on simulated cards, and a test kubelet that uses gRPC's library."""

import json
import os
import random
import signal
import socket
import subprocess
import threading
import time

import pytest
from machines import wait_until
from held import compile_c, link_with_driver
from kubelet import PATIENCE, Plugin, field, grpc, names
from plugin_node import ENDPOINT, ids, make_node  # noqa: F401
from sim_peers import start_sim  # noqa: F401
from test_freezer_runc import RuncContainer, why_not_runc

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the system daemon is root's")

MIB = 1 << 20


# ---- preference ----

def test_preference(make_node):  # noqa: F811
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


def test_what_is_allocated(make_node):  # noqa: F811
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


def test_a_hard_limit_and_other_slices(make_node):  # noqa: F811
    node = make_node("h200", kube_slices=3, kube_slice_limit="hard", kube_resource="allot.example/third")
    plugin = node.kubelet.wait_registered()
    assert node.kubelet.registrations[0][1][2] == b"allot-third.sock"
    assert len(node.kubelet.watch.last) == 3
    plugin.allocate(ids(node.uuids()[0], 2))
    device = node.tenants()[0]["devices"][0]
    assert device["cores_pct"] == device["cores_limit_pct"] == 33.33


def test_a_refused_container_takes_nothing(make_node):  # noqa: F811
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


def test_garbage(make_node):  # noqa: F811
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


def test_many_at_a_time(make_node):  # noqa: F811
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


def test_as_fast_with_a_thousand(make_node):  # noqa: F811
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


def test_a_container_has_its_slices(make_node, tmp_path):  # noqa: F811
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
