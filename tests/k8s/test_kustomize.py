"""The kustomization, for users without Helm: it makes the same objects as the chart with its default values."""

import base64
import json
import re
import shutil
import subprocess

import pytest

from charts import KUSTOMIZATION, Helm, check_settings, objects, of_kind, path_of
from cluster import ApiError
from machines import BUILD

NAMESPACE = "allot-system"
# Labels that only Helm writes.
LEFT_OUT = ("helm.sh/chart", "app.kubernetes.io/managed-by", "app.kubernetes.io/version")


@pytest.fixture(scope="module")
def tools(build_programs):
    return build_programs("helm", "kustomize")


@pytest.fixture(scope="module")
def rendered(tools, tmp_path_factory):
    """(the objects, the certificate), made as the kustomization's first lines say, with a certificate of allot-scheduler."""
    folder = tmp_path_factory.mktemp("kustomize") / "k"
    shutil.copytree(KUSTOMIZATION, folder, ignore=shutil.ignore_patterns("tls"))
    subprocess.run([BUILD / "allot-scheduler", "--issue", folder / "tls", "--names",
                    f"allot-scheduler.{NAMESPACE}.svc,localhost"], check=True, capture_output=True, timeout=60)
    done = subprocess.run([tools / "kustomize", "build", folder], capture_output=True, text=True, check=False,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    return objects(done.stdout), (folder / "tls/tls.crt").read_bytes()


def plain(value):
    """An object without the parts that only one tool writes: Helm's labels, hashes of settings and in names, comments."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()
                if key not in (*LEFT_OUT, "allot.dev/settings", "caBundle") and (key, inner) != ("annotations", {})}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, str):
        value = re.sub(r"^(allotd|allot-scheduler)-[a-z0-9]{10}$", r"\1", value)
        return "\n".join(line for line in value.strip().split("\n") if not line.startswith("#"))
    return value


def without_empty(one):
    annotations = one.get("spec", {}).get("template", {}).get("metadata", {})
    if annotations.get("annotations") == {}:
        del annotations["annotations"]
    return one


def by_name(made):
    return {(one["kind"], one["metadata"]["name"]): without_empty(plain(one)) for one in made}


def test_objects_equal_the_charts(tools, rendered, tmp_path):
    made, certificate = rendered
    chart = by_name(Helm(tools / "helm", tmp_path).render(
        ["certificate.from=secret", "certificate.secretName=allot-scheduler-tls"], "--skip-tests",
        namespace=NAMESPACE))
    ours = {(kind, re.sub(r"-[a-z0-9]{10}$", "", name) if kind == "ConfigMap" else name): one
            for (kind, name), one in by_name(made).items()}
    # With Helm, the namespace is an option, and these values name an existing Secret.
    for kind, name in (("Namespace", NAMESPACE), ("Secret", "allot-scheduler-tls")):
        del ours[kind, name]
    assert ours.keys() == chart.keys()
    for key, one in chart.items():
        assert ours[key] == one, key
    webhook = of_kind(made, "MutatingWebhookConfiguration")
    assert base64.b64decode(webhook["webhooks"][0]["clientConfig"]["caBundle"]) == certificate


def test_api_server_accepts_the_objects(cluster, rendered):
    # In a namespace that no other test uses.
    for one in json.loads(json.dumps(rendered[0]).replace(NAMESPACE, "allot-kustomize")):
        dry = "" if one["kind"] == "Namespace" else "&dryRun=All"
        try:
            cluster.request("POST", path_of(one), one, query=f"?fieldValidation=Strict{dry}")
        except ApiError as error:
            assert error.status == 409, f"{one['kind']}: {error}"


def test_programs_accept_their_settings(tmp_path):
    for program in ("allotd", "allot-scheduler"):
        check_settings(program, (KUSTOMIZATION / f"{program}.conf").read_text(), tmp_path)
