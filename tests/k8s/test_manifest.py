"""The manifests of deploy/kubernetes: a real API server accepts each object with all its fields, and allotd accepts the
settings in them."""

import json
import re
import subprocess

from machines import BUILD, ROOT

FILE = ROOT / "deploy/kubernetes/allotd.yaml"
PATHS = {"Namespace": "/api/v1/namespaces",
          "ServiceAccount": "/api/v1/namespaces/allot-system/serviceaccounts",
          "ConfigMap": "/api/v1/namespaces/allot-system/configmaps",
          "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
          "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
          "DaemonSet": "/apis/apps/v1/namespaces/allot-system/daemonsets"}


def apply(cluster, text, kind, dry=True):
    query = "?fieldValidation=Strict" + ("&dryRun=All" if dry else "")
    return json.loads(cluster.send("POST", PATHS[kind], text.encode(), "application/yaml", query))


def test_api_server_accepts_the_objects(cluster):
    made = {}
    for text in FILE.read_text().split("\n---\n"):
        kind = re.search(r"^kind: (\w+)$", text, re.M)[1]
        # The test's cluster already has a role named allotd.
        text = re.sub(r"^(metadata:\n  name: )allotd$", r"\1allotd-manifest", text, flags=re.M)
        made[kind] = apply(cluster, text, kind, dry=kind != "Namespace")
    assert set(made) == set(PATHS)
    spec = made["DaemonSet"]["spec"]["template"]["spec"]
    assert spec["hostPID"] is True
    (container,) = spec["containers"]
    assert container["securityContext"]["privileged"] is True
    # A host directory is mounted at the same path in the container.
    paths = {volume["name"]: volume["hostPath"]["path"] for volume in spec["volumes"] if "hostPath" in volume}
    for mount in container["volumeMounts"]:
        assert paths.get(mount["name"], mount["mountPath"]) == mount["mountPath"]
    rights = {(resource, verb) for rule in made["ClusterRole"]["rules"] for resource in rule["resources"]
              for verb in rule["verbs"]}
    assert {("nodes", "patch"), ("pods", "patch"), ("pods", "watch")} <= rights
    assert not {verb for _, verb in rights} & {"*", "delete"}


def test_allotd_accepts_the_settings(tmp_path):
    block = re.search(r"  allotd\.conf: \|\n((?:    .*\n)+)", FILE.read_text())[1]
    settings = tmp_path / "allotd.conf"
    settings.write_text(re.sub("^    ", "", block, flags=re.M))
    done = subprocess.run([BUILD / "allotd", "--check-config", settings], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "kube_plugin = on" in settings.read_text()
