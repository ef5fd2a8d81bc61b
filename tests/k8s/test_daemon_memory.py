"""The daemon's memory use on a full node: eight GPUs, 200 tenants with one process each, the device plugin, a client that
scrapes the metrics, and as many pods in the Kubernetes API as a node may have."""

import os
import pathlib
import subprocess

import pytest

from daemon import Daemon
from machines import BUILD, wait_until
from held import compile_c, link_with_driver
from kubelet import Kubelet
from scrape import Page, request

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the system daemon needs root")

GPUS, TENANTS, PODS = 8, 200, 110
MOST_MIB = 30


def memory_mib(pid):
    """(Pss, Rss) of a process: Pss counts shared pages in proportion, Rss counts them fully."""
    lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    figures = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines}
    return figures["Pss"], figures["Rss"]


class Node:
    def __init__(self, cluster, directory, name):
        self.metrics = f"unix:{directory}/metrics.sock"
        plugins = directory / "plugins"
        plugins.mkdir()
        self.kubelet = Kubelet(plugins).start()
        settings = (f"kube_plugin = on\nkube_plugin_dir = {plugins}\nkube_slices = {TENANTS // GPUS}\n"
                    f"kube_pod_resources = none\nstate_dir = {directory}/state\nmetrics_listen = {self.metrics}\n"
                    "metrics_names = hami,gpu-manager\n")
        self.daemon = Daemon(directory, cluster.kubeconfig(f"{name}.conf"), name, is_private=False,
                             cards=f"h200x{GPUS}", settings=settings).start()
        self.plugin = self.kubelet.wait_registered()
        self.processes = []

    @property
    def pid(self):
        return self.daemon.processes[-1].pid

    def page(self):
        return Page(request(self.metrics)[2])

    def start(self, device, program):
        """Allocates this device to a tenant, and starts a process in it that holds memory."""
        answer, = self.plugin.allocate([device])
        host = {inside: outside for inside, outside, _ in answer.mounts}
        environment = {**os.environ, **answer.env, "ALLOT_SOCKET": f"{host['/run/allot/tenant']}/allot.sock",
                       "ALLOT_SIM_SOCKET": host["/run/allot/sim.sock"], "LD_LIBRARY_PATH": host["/run/allot/sim"],
                       "LD_PRELOAD": str(BUILD / "liballot.so")}
        self.processes.append(subprocess.Popen([program, "64", str(1 << 20)], env=environment, stdin=subprocess.PIPE,
                                               stdout=subprocess.PIPE, text=True))

    def close(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.communicate()
        self.kubelet.stop()
        self.daemon.stop()


@pytest.fixture
def node(cluster, tmp_path):
    name = "with-many-tenants"
    cluster.make_node(name)
    node = Node(cluster, tmp_path, name)
    yield node
    node.close()


def test_memory_with_200_tenants_is_bounded(node, cluster, tmp_path):
    program = compile_c(tmp_path / "quota", *link_with_driver(), "quota.c")
    for number in range(PODS):
        cluster.make_pod(f"p-many-{number}", node.daemon.node, {"example/of": "text " * 40})
    before = memory_mib(node.pid)
    wait_until(lambda: len(node.kubelet.watch.last or ()) == TENANTS, what="the devices")
    for device in sorted(node.kubelet.watch.last):
        node.start(device, program)
    for process in node.processes:
        line = process.stdout.readline()
        assert "first 0 second 2" in line, line

    def are_all_counted():
        page = node.page()
        held = [value for _, value in page.all("allot_tenant_memory_used_bytes")]
        return sum(value > 64 << 20 for value in held) == TENANTS

    wait_until(are_all_counted, what="the tenants' memory")
    for _ in range(20):
        node.page()
    pss, rss = memory_mib(node.pid)
    print(f"{TENANTS} tenants: {pss:.1f} MiB, {rss:.1f} with shared pages; before {before[0]:.1f} and {before[1]:.1f}")
    assert node.daemon.is_alive(), node.daemon.log
    assert pss < MOST_MIB
