"""The documentation's examples for Kubernetes: a real API server accepts the objects, and Helm accepts its command lines."""

import re
import shlex

import pytest
import yaml

import foreign
from charts import CHART, Helm, path_of
from machines import ROOT

PAGES = [*sorted((ROOT / "docs").rglob("*.md")), CHART / "README.md"]


@pytest.fixture(scope="module")
def helm(build_programs, tmp_path_factory):
    return Helm(build_programs("helm", "kustomize") / "helm", tmp_path_factory.mktemp("helm"))


def test_api_server_accepts_the_objects(cluster):
    seen = 0
    for page in PAGES:
        for text in re.findall(r"^ *```yaml\n(.*?)^ *```", page.read_text(), re.M | re.S):
            for one in yaml.safe_load_all(text):
                if one.get("kind") in ("Pod", "ResourceClaim", "ResourceClaimTemplate"):
                    one["metadata"].setdefault("namespace", "default")
                    answer = cluster.request("POST", path_of(one), one, query="?dryRun=All&fieldValidation=Strict")
                    assert answer["metadata"]["name"] == one["metadata"]["name"]
                    seen += 1
    assert seen


def test_helm_renders_the_charts_command_lines(helm):
    seen = 0
    for page in PAGES:
        text = page.read_text().replace("\\\n", " ")
        for line in re.findall(r"^\s*(helm (?:install|upgrade) .*deploy/helm/allot .*)$", text, re.M):
            words = shlex.split(line, comments=True)[2:]
            arguments = [word for word in words if word not in ("--create-namespace", "--reuse-values")]
            arguments[arguments.index("deploy/helm/allot")] = str(CHART)
            helm.check("template", *arguments)
            seen += 1
    assert seen >= 6


def test_helm_knows_all_commands_and_options(helm):
    """Helm parses every command line of the pages, including those that use another chart or need a cluster."""
    seen = 0
    for page in PAGES:
        text = page.read_text().replace("\\\n", " ")
        for line in re.findall(r"(?:^\s*|`)(helm (?!template`)[^`\n]*)", text, re.M):
            words = shlex.split(line, comments=True)
            if len(words) > 2:
                foreign.by_parsing(helm.program, *words[1:])
                seen += 1
    assert seen >= 10
    for wrong in ("helm upgarde allot x", "helm test allot --log"):
        with pytest.raises(AssertionError):
            foreign.by_parsing(helm.program, *wrong.split()[1:])


def test_named_values_exist_in_the_chart(helm):
    """Lines NAME=VALUE: the chart's schema refuses unknown names."""
    seen = 0
    for page in PAGES:
        values = re.findall(r"^((?:daemon|scheduler|webhook|image|certificate)\.[\w.]+)=(\S+)", page.read_text(), re.M)
        for name, value in values:
            helm.check("template", "allot", CHART, "--set", f"{name}={value.lower()}")
            assert helm.run("template", "allot", CHART, "--set", f"{name}x={value.lower()}").returncode
            seen += 1
    assert seen >= 3
