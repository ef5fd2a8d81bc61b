"""A system daemon on simulated GPUs with a test kubelet, for tests of allotd's device plugin. A test file must import the
fixtures `make_node` and `start_sim`."""

import json
import signal
import socket
import subprocess

import pytest
from machines import BUILD, wait_until
from kubelet import PATIENCE, Kubelet
from scrape import Page, request
from sim_peers import start_sim  # noqa: F401

ENDPOINT = "allot-gpu.sock"


class Node:
    """A system daemon on the simulated GPUs of `sim`. Its files and the kubelet's directory are in `directory`; `settings` are
    written to its allotd.conf."""

    def __init__(self, sim, directory, **settings):
        self.sim = sim
        self.directory = directory
        self.run_dir = directory / "run"
        self.plugins = directory / "plugins"
        self.log = directory / "log"
        self.config = directory / "allotd.conf"
        self.metrics = f"unix:{directory}/metrics.sock"
        settings = {"kube_plugin": "on", "kube_plugin_dir": self.plugins, "log_level": "debug",
                    "state_dir": directory / "state", "metrics_listen": self.metrics,
                    "watch_tasks": "off", **settings}
        self.config.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
        self.daemon = None
        self.within = ()  # a command that runs the daemon, such as unshare

    def command(self):
        return [*self.within, BUILD / "allotd", "--foreground", "--run-dir", self.run_dir, "--config", self.config,
                "--sim-socket", self.sim.socket, "--nvml", BUILD / "sim" / "libnvidia-ml.so.1"]

    def start(self):
        """Starts the daemon, waits until it answers, and returns the node."""
        with open(self.log, "a") as log:
            self.daemon = subprocess.Popen(self.command(), stderr=log, stdin=subprocess.DEVNULL)
        wait_until(self.answers, PATIENCE, "the daemon")
        return self

    def answers(self):
        assert self.daemon.poll() is None, self.log.read_text()
        try:
            return self.ask("hello")
        except OSError:
            return None

    def ask(self, op, **more):
        """Sends one request to the daemon's socket and returns its reply."""
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(self.run_dir / "allotd.sock"))
            s.sendall(json.dumps({"version": 1, "op": op, **more}).encode() + b"\n")
            return json.loads(s.makefile().readline())

    def listed(self):
        return self.ask("list")

    def uuids(self):
        return [device["uuid"] for device in self.listed()["devices"]]

    def tenants(self):
        return self.listed()["tenants"]

    def page(self):
        """The daemon's metrics."""
        return Page(request(self.metrics)[2])

    def end(self, how=signal.SIGTERM):
        if self.daemon:
            self.daemon.send_signal(how)
            self.daemon.wait(timeout=PATIENCE)
        self.daemon = None


@pytest.fixture
def make_node(start_sim, tmp_path_factory):  # noqa: F811
    """Returns make(spec, kubelet, **settings), which starts a Node. If `kubelet` is false, its test kubelet is not started."""
    directory = tmp_path_factory.mktemp("p")
    made, kubelets = [], []

    def make(spec="h200x2", kubelet=True, **settings):
        node = Node(start_sim(spec), directory, **settings)
        made.append(node)
        node.plugins.mkdir(exist_ok=True)
        node.kubelet = Kubelet(node.plugins)
        kubelets.append(node.kubelet)
        if kubelet:
            node.kubelet.start()
        return node.start()

    yield make
    for kubelet in kubelets:
        kubelet.stop()
    for node in made:
        node.end(signal.SIGKILL)


def ids(uuid, *numbers):
    """The device IDs of these slices of a GPU."""
    return [f"{uuid}-{number}" for number in numbers]
