"""Alerts and the dashboard. Prometheus's own checker accepts them, and they use only existing metrics. A real Prometheus that
reads a daemon has data for every panel, and fires alerts when something is wrong."""

import os
import re
import signal
import subprocess

import pytest
import yaml

from machines import ROOT, wait_until
from prometheus import FILES, Prometheus, alerts_of_rules, dashboard_queries, find, metric_names
from python_tenant import Tenant
from scrape import address_in
from servers import start_servers
from test_metrics import HOLD

CLUSTER = "Cluster, as allot-scheduler sees it"  # tests/k8s/test_prometheus.py
promtool = pytest.mark.skipif(not find("promtool"), reason="promtool is missing; scripts/test gets it")
prometheus = pytest.mark.skipif(not find("prometheus"), reason="prometheus is missing; scripts/test gets it")

DENIED = """
start()
look("ready")
refused(cu.cuMemAlloc(8 << 30))
look("refused")
"""


def run_promtool(*arguments, **more):
    return subprocess.run([find("promtool"), *arguments], capture_output=True, text=True, check=False, timeout=60,
                          **more)


# ---- files ----

@promtool
def test_rules_and_configuration_are_well_formed():
    done = run_promtool("check", "config", FILES / "prometheus.yml")
    assert done.returncode == 0 and "rules found" in done.stdout, done.stdout + done.stderr


@promtool
def test_rules_fire_when_they_should():
    done = run_promtool("test", "rules", FILES / "rules_test.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_a_firing_and_a_quiet_test():
    tests = {one["name"]: one["alert_rule_test"] for one in
             yaml.safe_load((FILES / "rules_test.yaml").read_text())["tests"]}
    assert list(tests) == list(alerts_of_rules())
    for name, cases in tests.items():
        assert {case["alertname"] for case in cases} == {name}
        assert {bool(case["exp_alerts"]) for case in cases} == {True, False}, name


@promtool
def test_rule_tests_detect_rules_that_never_fire(tmp_path):
    """Shows that test_rules_fire_when_they_should can fail, with the rules whose tests take minutes and not hours."""
    rules = yaml.safe_load((FILES / "rules.yaml").read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            rule["expr"] = "vector(0) > 1"
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules))
    tests = yaml.safe_load((FILES / "rules_test.yaml").read_text())
    tests["tests"] = [one for one in tests["tests"]
                      if all(case["eval_time"].endswith("m") for case in one["alert_rule_test"])]
    (tmp_path / "rules_test.yaml").write_text(yaml.safe_dump(tests))
    done = run_promtool("test", "rules", tmp_path / "rules_test.yaml")
    assert done.returncode != 0
    missed = set(re.findall(r"alertname: ?(\w+)", done.stdout + done.stderr))
    assert missed == {one["name"] for one in tests["tests"]} and len(missed) > 10, done.stdout


def test_each_alert_is_documented():
    page = (ROOT / "docs" / "reference" / "alerts.md").read_text()
    explained = re.findall(r"^## (Allot\w+)$", page, re.M)
    assert explained == list(alerts_of_rules())


@promtool
def test_every_expression_uses_existing_metrics(tmp_path):
    expressions = {**dashboard_queries(), **{name: rule["expr"] for name, rule in alerts_of_rules().items()}}
    assert len(expressions) > 60
    existing = metric_names()
    for name, expression in expressions.items():
        names = set(re.findall(r"\b(?:allot|hami)_\w+", expression))
        assert names and names <= existing, (name, names - existing)
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "checked", "rules": [
        {"record": f"r{i}", "expr": one} for i, one in enumerate(expressions.values())]}]}))
    done = run_promtool("check", "rules", file)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_dashboard_is_generated_from_its_table():
    made = subprocess.run([ROOT / "scripts/dashboard"], capture_output=True, text=True, check=True).stdout
    assert made == (FILES / "dashboard.json").read_text(), "scripts/dashboard >deploy/helm/allot/files/dashboard.json"


# ---- a real Prometheus ----

@pytest.fixture
def watched(machine, tmp_path):
    """(machine, Prometheus): Prometheus scrapes the daemon of a machine whose GPU has 8 GiB."""
    log = start_servers(machine, tmp_path, "metrics_listen = 127.0.0.1:0\ncensus_interval = 50ms\n",
                        f"memory = {8 << 30}\n")
    prometheus = Prometheus(tmp_path / "prometheus", {"allotd": address_in(log)})
    yield machine, prometheus
    prometheus.stop()


@prometheus
def test_a_demo_has_data_for_every_panel(watched, python):
    machine, prometheus = watched
    for name, cores in (("train", 45), ("eval", 30)):
        machine.start("--name", name, "--memory", "1GiB", "--cores", cores, "--",
                      *machine.load("--seconds", 120, "--kernel-us", 1000, "--sync-every", 10))
    swap = Tenant(machine, python, HOLD.format(mib=100), "1GiB", "batch",
                  ("--on-full", "swap", "--swap-arena", "256MiB"))
    first = Tenant(machine, python, HOLD.format(mib=1000), "3GiB", "first", ("--on-full", "wait"))
    assert swap.line() == "held" and first.line() == "held"
    Tenant(machine, python, HOLD.format(mib=1000), "3GiB", "second", ("--on-full", "wait"))
    machine.wait_for_tenant("second", lambda t: t["state"] == "queued")
    queries = {panel: expression for panel, expression in dashboard_queries().items() if panel[0] != CLUSTER}
    assert len(queries) > 30
    for panel, expression in queries.items():
        prometheus.wait_for_data(expression, panel)
    busy = prometheus.query('sum(rate(allot_tenant_gpu_seconds_total{tenant=~"train|eval"}[5s]))')[0][1]
    assert busy > 0.2
    assert prometheus.query("count(allot_build_info)")[0][1] == 1


def names_of(alerts):
    return {one["alertname"] for one in alerts}


@prometheus
def test_only_faults_fire_their_alerts(watched, python):
    machine, prometheus = watched
    machine.start("--name", "well", "--memory", "1GiB", "--cores", "30", "--", *machine.load("--seconds", 120))
    bypassing = machine.start("--name", "bypassing", "--memory", "1GiB", "--", "sh", "-c",
                              'read -r line; exec env -u LD_PRELOAD "$@"', "sh", *machine.load("--seconds", 120),
                              stdin=subprocess.PIPE)
    wants = Tenant(machine, python, DENIED, "1GiB", "wants")
    assert wants.line() == "ready"
    # Prometheus computes an increase only from samples that include the 0 before.
    for metric in ("violations_total", "allocations_denied_total"):
        for tenant in ("bypassing", "wants"):
            prometheus.wait_for_data(f'count_over_time(allot_tenant_{metric}{{tenant="{tenant}"}}[1m]) >= 2')
    prometheus.wait_for_evaluation()
    wait_until(lambda: prometheus.firing() == [], what="no alert")

    bypassing.stdin.write("go\n")
    bypassing.stdin.close()
    wants.go()
    assert wants.line() == "refused"
    refused = machine.run("--memory", "100GiB", "--", "true")
    assert refused.returncode == 125
    found = prometheus.wait_for_alert("AllotLibraryBypassed", tenant="bypassing", reason="unregistered")
    assert found["node"] == "127.0.0.1"
    prometheus.wait_for_alert("AllotAllocationsDenied", tenant="wants")
    prometheus.wait_for_alert("AllotTenantsRefused", reason="no_room")
    expected = {"AllotLibraryBypassed", "AllotAllocationsDenied", "AllotTenantsRefused"}
    wait_until(lambda: names_of(prometheus.firing()) == expected, what="these alerts alone")


@prometheus
def test_alerts_end_when_their_cause_is_gone(watched, python):
    machine, prometheus = watched
    first = Tenant(machine, python, HOLD.format(mib=1000), "5GiB", "first", ("--on-full", "wait"))
    assert first.line() == "held"
    second = Tenant(machine, python, HOLD.format(mib=1000), "5GiB", "second", ("--on-full", "wait"))
    prometheus.wait_for_alert("AllotMemoryWaits", tenant="second")
    first.go()
    first.end()
    assert second.line() == "held"
    wait_until(lambda: "AllotMemoryWaits" not in names_of(prometheus.firing()), what="the end of the alert")
    daemon, = machine.daemons()
    os.kill(daemon, signal.SIGSTOP)
    try:
        found = prometheus.wait_for_alert("AllotNodeWithoutArbiter")
        assert found["node"] == "127.0.0.1"
    finally:
        os.kill(daemon, signal.SIGCONT)
    wait_until(lambda: "AllotNodeWithoutArbiter" not in names_of(prometheus.firing()), what="the end of the alert")
