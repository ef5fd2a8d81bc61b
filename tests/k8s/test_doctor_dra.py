"""allot doctor on a node with the DRA driver checks its registration, ResourceSlice, DeviceClass and rights."""

import json
import os
import subprocess

import pytest

import dra
from cluster import ADMIN_TOKEN, SCHEDULER_TOKEN
from machines import BUILD, wait_until
from dra_node import make_node, sharing_cluster  # noqa: F401

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the system daemon needs root")


def findings(node, **access):
    config = node.cluster.kubeconfig("doctor.conf", **access)
    done = subprocess.run([BUILD / "allot", "doctor", "--json", "--kubeconfig", config, "--node", node.name, "--run-dir",
                           node.daemon.run_dir], capture_output=True, text=True, check=False, timeout=120)
    return {(one["check"], one["level"]): one["what"] for one in json.loads(done.stdout)["findings"]
            if one["check"].startswith("dra")}


def test_findings_about_a_dra_driver(make_node):  # noqa: F811
    node = make_node()
    node.wait_devices(lambda found: len(found) == 2, "the slice")
    assert "has not registered gpu.allot.dev" in findings(node)["dra", "problem"]
    node.driver.notify()
    found = wait_until(lambda: ("dra", "ok") in (found := findings(node)) and found, what="the registration")
    assert found["dra-slice", "ok"] == "2 GPUs in ResourceSlices"
    # The driver's account may not read DeviceClasses, so there is no finding about them.
    assert set(found) == {("dra", "ok"), ("dra-slice", "ok")}
    found = findings(node, user=f"token: {SCHEDULER_TOKEN}")
    assert "ResourceClaims can't be read: GET" in found["dra-rights", "warning"]
    node.cluster.request("DELETE", f"{dra.API}/deviceclasses/{dra.DRIVER}")
    try:
        assert findings(node, user=f"token: {ADMIN_TOKEN}")["dra-class", "warning"] == "there is no DeviceClass gpu.allot.dev"
    finally:
        dra.make_class(node.cluster)
