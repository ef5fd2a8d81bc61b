"""Cordoned GPUs become tainted devices, if the cluster supports device taints: with a real API server and scheduler."""

import os

import pytest

import dra
from cluster import ALLOTD_DRA_RULES, Cluster
from machines import wait_until
from dra_node import make_node  # noqa: F401

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the system daemon is root's")


@pytest.fixture(scope="module")
def sharing_cluster(build_programs, tmp_path_factory):
    """For make_node()."""
    programs = build_programs("etcd", "kube-apiserver", "kube-scheduler")
    cluster = Cluster(programs, tmp_path_factory.mktemp("tainting"), "DRAConsumableCapacity=true,DRADeviceTaints=true", ALLOTD_DRA_RULES,
                      "resource.k8s.io/v1alpha3=true")
    try:
        cluster.start()
        dra.make_class(cluster)
        cluster.launch_plain_scheduler()
        yield cluster
    finally:
        cluster.stop()


def test_a_cordoned_gpu_is_tainted(make_node):  # noqa: F811
    """It is told of with the reason, and the scheduler gives it to no claim."""
    node = make_node()
    cluster = node.cluster
    amounts = {"cpu": "8", "memory": "8Gi", "pods": "10"}
    cluster.set_status(node.name, {"capacity": amounts, "allocatable": amounts})
    cluster.request("PATCH", f"/api/v1/nodes/{node.name}", {"spec": {"taints": None}}, kind="application/merge-patch+json")
    uuids = [card["uuid"] for card in node.cards()]
    for uuid in uuids:
        node.ask("cordon", uuid=uuid, cordoned=True)
    node.wait_devices(lambda found: all("taints" in device for device in found.values()), "taints")
    found = node.devices()
    assert set(found) == {uuid.lower() for uuid in uuids}
    for device in found.values():
        taint, = device["taints"]
        assert (taint["key"], taint["effect"]) == ("gpu.allot.dev/cordoned", "NoSchedule")
    dra.make_claim(cluster, "small", [dra.request(capacity={"memory": "1Gi"})])
    cluster.make_pod("waits", more={"resourceClaims": [{"name": "gpu", "resourceClaimName": "small"}]})
    wait_until(lambda: any("cannot allocate all claims" in event["message"] for event in cluster.events()), what="the event")
    node.ask("cordon", uuid=uuids[1], cordoned=False)
    result, = wait_until(lambda: cluster.request("GET", dra.path_of("small")).get("status", {}).get("allocation"),
                         60, "the allocation")["devices"]["results"]
    assert result["device"] == uuids[1].lower()
    cluster.delete_pod("waits")
