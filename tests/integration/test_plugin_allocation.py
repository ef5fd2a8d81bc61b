"""allotd's device plugin: preferred allocations, the terms of allocated devices, refused requests, and a container."""

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

def test_preferred_allocation(make_node):  # noqa: F811
    node = make_node()
    plugin = node.kubelet.wait_registered()
    first, second = node.uuids()
    everything = ids(first, *range(10)) + ids(second, 0, 1, 2)
    random.shuffle(everything)
    assert sorted(plugin.prefer(everything, 2)) == ids(second, 0, 1)
    assert sorted(plugin.prefer(everything, 4)) == ids(first, 0, 1, 2, 3)
    assert sorted(plugin.prefer(everything, 2, ids(first, 7))) == ids(first, 0, 7)
    assert len(plugin.prefer(everything, 13)) == 13
    for available, size, must, text in ((everything, 14, [], "asks for 14 devices"),
                                        (["GPU-x-0"], 1, [], "'GPU-x-0' is not one of allotd's"),
                                        (ids(first, 0), 1, ids(first, 1), "must include")):
        with pytest.raises(grpc.RpcError) as raised:
            plugin.prefer(available, size, must)
        assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert text in raised.value.details()


# ---- allocation ----

def devices_of(tenant):
    """{index of the GPU: the tenant's terms on it}"""
    return {device["index"]: device for device in tenant["devices"]}


def test_terms_of_allocated_devices(make_node):  # noqa: F811
    node = make_node()
    plugin = node.kubelet.wait_registered()
    first, second = node.uuids()
    gpu_bytes = node.listed()["devices"][0]["memory_bytes"]
    one, = plugin.allocate(ids(first, 3))
    tenant, = node.tenants()
    device, = tenant["devices"]
    assert device["index"] == 0
    assert gpu_bytes / 10 - MIB < device["memory_quota_bytes"] <= gpu_bytes / 10
    assert device["cores_pct"] == 10 and device["cores_limit_pct"] == 100
    assert one.env and one.mounts
    assert all(os.path.exists(host) for _, host, _ in one.mounts)
    # Slices of one GPU add up. A container with two GPUs has a quota on each. The kubelet sends the IDs in any order.
    chosen = ids(first, 9, 0) + ids(second, 5, 1, 2)
    random.shuffle(chosen)
    before, = plugin.allocate(chosen)
    both, = (t for t in node.tenants() if len(t["devices"]) == 2)
    of = devices_of(both)
    assert of[0]["cores_pct"] == 20 and of[1]["cores_pct"] == 30
    assert gpu_bytes * .3 - MIB < of[1]["memory_quota_bytes"] <= gpu_bytes * .3
    # The same devices again, as a pod's containers get those of its init containers: the first answer remains valid.
    random.shuffle(chosen)
    again, = plugin.allocate(chosen)
    assert again.mounts == before.mounts and again.env == before.env
    assert len(node.tenants()) == 2 and all(os.path.exists(host) for _, host, _ in before.mounts)
    # It remains valid even if the same call fails for another container.
    plugin.refused(chosen, ["GPU-none-0"])
    assert len(node.tenants()) == 2 and all(os.path.exists(host) for _, host, _ in before.mounts)
    # A new combination of these devices replaces both tenants.
    plugin.allocate(ids(first, 3, 0))
    assert sorted(len(t["devices"]) for t in node.tenants()) == [1]
    # All devices of the node.
    plugin.allocate(ids(first, *range(10)) + ids(second, *range(10)))
    tenant, = node.tenants()
    assert [d["cores_pct"] for d in tenant["devices"]] == [100, 100]
    plugin.call("PreStartContainer", names(1, ids(first, 1)))
    assert node.page().value("allot_plugin_allocations_total") == 5


def test_hard_limit_and_three_slices(make_node):  # noqa: F811
    node = make_node("h200", kube_slices=3, kube_slice_limit="hard", kube_resource="allot.example/third")
    plugin = node.kubelet.wait_registered()
    assert node.kubelet.registrations[0][1][2] == b"allot-third.sock"
    assert len(node.kubelet.watch.last) == 3
    plugin.allocate(ids(node.uuids()[0], 2))
    device = node.tenants()[0]["devices"][0]
    assert device["cores_pct"] == device["cores_limit_pct"] == 33.33


def test_refused_allocation_changes_nothing(make_node):  # noqa: F811
    node = make_node()
    plugin = node.kubelet.wait_registered()
    first = node.uuids()[0]
    for containers, text in (([[]], "the request names no devices"),
                             ([["GPU-x-0"]], "'GPU-x-0' is not one of allotd's"),
                             ([ids(first, 10)], "must be 0 to 9"),
                             ([[f"{first}-00"]], "must be 0 to 9"),
                             ([[first]], "is not one of allotd's"),
                             ([["x" * 5000]], "is not one of allotd's"),
                             ([ids(first, 1, 1)], "named twice"),
                             ([ids(first, 1), ids(first, 11)], "must be 0 to 9"),
                             ([[f"{first}-{i % 10}" for i in range(41)]], "more devices")):
        error = plugin.refused(*containers)
        assert error.code() == grpc.StatusCode.INVALID_ARGUMENT and text in error.details()
    assert node.tenants() == []
    with pytest.raises(grpc.RpcError) as raised:
        plugin.call("PreStartContainer", names(1, ["none"]))
    assert "'none' is not one of allotd's" in raised.value.details()
    assert node.page().value("allot_plugin_allocations_refused_total") == 9


def test_random_requests(make_node):  # noqa: F811
    """Damaged messages, messages that are too long and random bytes on the socket do not disturb the kubelet's calls."""
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


def test_concurrent_allocations(make_node):  # noqa: F811
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
          f"{1000 * took[len(took) // 2]:.1f} ms for the client, at most {1000 * took[-1]:.1f}")


def test_allocation_time_does_not_grow(make_node):  # noqa: F811
    """The time of an allocation, by the daemon's own clock, does not grow with the number of earlier allocations."""
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
              f"for the client, 99th percentile {took[len(took) * 99 // 100]:.2f}, at most {took[-1]:.2f}")
        return mean

    few = allocate(chosen[:200])
    allocate(chosen[200:1000])
    many = allocate(chosen[1000:1200])
    assert len(node.tenants()) == 1200
    assert many < 5 * few


# ---- a container ----

def make_container(node, directory, answer, command, number):
    """Makes a runc container with the environment and mounts of an Allocate answer, as a kubelet would. `number` is its ID."""
    container = RuncContainer(directory, number, None, command, list(answer.env.items()), directory)
    path = container.bundle / "config.json"
    config = json.loads(path.read_text())
    for inside, outside, is_read_only in answer.mounts:
        config["mounts"].append({"destination": inside, "type": "bind", "source": outside,
                                 "options": ["rbind", "ro" if is_read_only else "rw"]})
    assert not answer.devices  # simulated GPUs have no device files
    path.write_text(json.dumps(config))
    return container


def test_container_has_its_slices(make_node, tmp_path):  # noqa: F811
    reason = why_not_runc(tmp_path)
    if reason:
        pytest.skip(reason)
    node = make_node()
    plugin = node.kubelet.wait_registered()
    first, second = node.uuids()
    quota = compile_c(tmp_path / "quota", *link_with_driver(), "quota.c")
    answer, = plugin.allocate(ids(first, 4, 5) + ids(second, 0))
    terms = devices_of(node.tenants()[0])
    container = make_container(node, tmp_path, answer, [quota, 8 << 10, 24 << 10], f"{0xA110:x}".ljust(64, "0"))
    process = subprocess.Popen(["runc", "--root", container.state, "run", "--bundle",
                                container.bundle, container.id], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        lines = []
        while not lines or lines[-1] not in ("end\n", ""):
            lines.append(process.stdout.readline())
        assert lines[-1] == "end\n", process.stderr.read()
        seen = [line.split() for line in lines[:-1]]
        assert [int(fields[3]) for fields in seen] == \
            [terms[i]["memory_quota_bytes"] // MIB for i in (0, 1)]
        # 8 GiB fit on each GPU. 24 GiB more exceed two tenths of the first GPU and one tenth of the second.
        assert [(fields[5], fields[7]) for fields in seen] == [("0", "2"), ("0", "2")]
        tenant, = node.tenants()
        assert tenant["devices"][0]["memory_used_bytes"] >= 8 << 30
        # While it runs, no other container gets its devices, and the error names the tenant that has them.
        error = plugin.refused(ids(second, 0))
        assert error.code() == grpc.StatusCode.FAILED_PRECONDITION
        assert f"{second}-0" in error.details() and tenant["name"] in error.details()
        # This holds even after the daemon was killed and started again.
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
    wait_until(lambda: node.tenants()[0]["devices"][0]["memory_used_bytes"] == 0, what="the end of the container")
    assert node.kubelet.plugin.allocate(ids(second, 0))
