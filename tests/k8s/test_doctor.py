"""allot doctor reads its node from a real API server."""

import json
import subprocess

from machines import BUILD


def findings(*options):
    done = subprocess.run([BUILD / "allot", "doctor", "--json", "--sim", "h200", *options], capture_output=True, text=True,
                          check=False, timeout=120)
    report = json.loads(done.stdout)
    return [(one["check"], one["level"], one["what"]) for one in report["findings"] if one["check"] in ("node", "taint")]


def test_findings_about_the_node_and_its_taints(cluster):
    config = cluster.kubeconfig("doctor.conf")
    options = ["--kubeconfig", config, "--node", "doctors"]
    (check, level, what), = findings(*options)
    assert (check, level) == ("node", "warning") and 'nodes "doctors" not found' in what
    cluster.request("POST", "/api/v1/nodes", {"metadata": {"name": "doctors"}, "spec": {"taints": [
        {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]}})
    try:
        found = findings(*options)
        assert ("node", "ok", "doctors takes pods") in found
        # The server itself adds a taint because the node is not ready.
        assert {("note", "nvidia.com/gpu=present:NoSchedule"), ("warning", "node.kubernetes.io/disk-pressure:NoSchedule")} \
            <= {(level, what.split(": ")[0]) for check, level, what in found if check == "taint"}
        cluster.request("PATCH", "/api/v1/nodes/doctors", {"spec": {"unschedulable": True, "taints": None}},
                        kind="application/merge-patch+json")
        assert findings(*options)[0][1:] == ("warning", "doctors is cordoned: no new pods come here")
    finally:
        cluster.request("DELETE", "/api/v1/nodes/doctors")
