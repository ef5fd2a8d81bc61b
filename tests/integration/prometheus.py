"""Runs a real Prometheus for a test, with the configuration, rules and dashboard of deploy/prometheus."""

import http.client
import json
import re
import shutil
import socket
import subprocess
import urllib.parse

import yaml

from machines import BUILD, ROOT, wait_until

FILES = ROOT / "deploy" / "prometheus"
# Values for Grafana's variables in queries.
VARIABLES = {"$__rate_interval": "10s", "$node": ".*"}


def find(program):
    """Returns the path of prometheus or promtool. scripts/test unpacks them from Debian's package of Prometheus."""
    here = ROOT / "build" / program
    return str(here) if here.exists() else shutil.which(program)


def alerts_of_rules():
    """Returns {name of alert: its rule}."""
    groups = yaml.safe_load((FILES / "rules.yaml").read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    named = {rule["alert"]: rule for rule in rules}
    assert len(named) == len(rules)
    return named


def dashboard_queries():
    """Returns {(row, panel, legend): expression}."""
    found = {}
    row = None
    for panel in json.loads((FILES / "dashboard.json").read_text())["panels"]:
        row = panel["title"] if panel["type"] == "row" else row
        for target in panel.get("targets", []):
            expression = target["expr"]
            for name, value in VARIABLES.items():
                expression = expression.replace(name, value)
            found[row, panel["title"], target["legendFormat"]] = expression
    return found


def metric_names():
    """Returns the names of all metrics of allotd and allot-scheduler."""
    done = subprocess.run([BUILD / "allotd", "--list-metrics"], capture_output=True, text=True, check=True)
    types = dict(re.findall(r"^\| `(\w+)` \| (\w+) ", done.stdout, re.M))
    names = set(types) | {f"{name}_{part}" for name, kind in types.items() if kind == "summary" for part in ("count", "sum")}
    for file in ("metrics.c", "metrics_cluster.c"):
        names |= set(re.findall(r'"((?:allot_scheduler|hami)_\w+)"', (ROOT / "src/scheduler/service" / file).read_text()))
    return names


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Prometheus:
    """A Prometheus that scrapes `targets` ({job: address}) and evaluates the rules every second. The shipped rules are changed
    in two ways: alerts fire at once, and conditions over one hour cover two seconds."""

    def __init__(self, folder, targets):
        folder.mkdir(exist_ok=True)
        config = yaml.safe_load((FILES / "prometheus.yml").read_text())
        config["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
        for job in config["scrape_configs"]:
            job["static_configs"] = [{"targets": [targets[job["job_name"]]]}] if job["job_name"] in targets else []
        (folder / "prometheus.yml").write_text(json.dumps(config))
        rules = (FILES / "rules.yaml").read_text()
        rules = re.sub(r"^ +for: .*\n", "", rules, flags=re.M).replace("> 3600", "> 2").replace("[1h]))", "[2s]))")
        (folder / "rules.yaml").write_text(rules)
        self.port = free_port()
        self.log = folder / "log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [find("prometheus"), f"--config.file={folder / 'prometheus.yml'}",
                 f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{self.port}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(self.is_ready, what="Prometheus")

    def is_ready(self):
        assert self.process.poll() is None, self.log.read_text()
        try:
            return self.ask("/-/ready")[0] == 200
        except OSError:
            return False

    def ask(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def query(self, expression):
        """Returns [(labels, value)]."""
        status, text = self.ask("/api/v1/query?" + urllib.parse.urlencode({"query": expression}))
        assert status == 200, text
        return [(one["metric"], float(one["value"][1])) for one in json.loads(text)["data"]["result"]]

    def evaluations(self):
        """Returns {group of rules: time of its last evaluation}."""
        groups = json.loads(self.ask("/api/v1/rules")[1])["data"]["groups"]
        return {group["name"]: group["lastEvaluation"] for group in groups}

    def wait_for_evaluation(self):
        """Waits until each group was evaluated twice: the first evaluation may have begun before this call."""
        for _ in range(2):
            before = self.evaluations()
            wait_until(lambda: all(then != before[name] for name, then in self.evaluations().items()),
                       what="an evaluation of the rules")

    def firing(self):
        """Returns the labels of each alert that is firing."""
        return [one["labels"] for one in json.loads(self.ask("/api/v1/alerts")[1])["data"]["alerts"]
                if one["state"] == "firing"]

    def wait_for_alert(self, name, **labels):
        def matching():
            return [one for one in self.firing() if one["alertname"] == name and labels.items() <= one.items()]

        return wait_until(matching, what=f"alert {name}")[0]

    def wait_for_data(self, expression, what=""):
        return wait_until(lambda: self.query(expression), what=f"data for {what}: {expression}")

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=20)
