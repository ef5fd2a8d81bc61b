"""A node with the DRA driver for tests that play the kubelet and the scheduler, and the fixtures that make it."""

import json
import re
import signal
import socket
import subprocess

import pytest

import dra
from api_proxy import ApiProxy
from cluster import ALLOTD_DRA_RULES, Cluster
from daemon import Daemon
from machines import BUILD, wait_until

MIB = 1 << 20
GIB = 1 << 30


@pytest.fixture(scope="module")
def sharing_cluster(programs, tmp_path_factory):
    """A cluster in which claims can share devices: the feature gate for that is on, as by default from Kubernetes 1.36."""
    cluster = Cluster(programs, tmp_path_factory.mktemp("sharing"), dra.GATES, ALLOTD_DRA_RULES)
    try:
        cluster.start()
        dra.make_class(cluster)
        yield cluster
    finally:
        cluster.stop()


class Node:
    """A node with allotd as its DRA driver, and the kubelet's side of it. `api`: the ApiProxy by which allotd reaches the API
    server. `settings`: further lines of allotd's settings. `more`: options of Daemon."""
    are_published = False   # a slice for each GPU has been seen

    def __init__(self, cluster, api, directory, name, settings="", **more):
        self.cluster, self.directory, self.name = cluster, directory, name
        self.uid = cluster.make_node(name)["metadata"]["uid"]
        self.registry, self.cdi = directory / "registry", directory / "cdi"
        self.registry.mkdir()
        self.socket = self.registry / dra.SOCKET
        self.daemon = Daemon(directory, cluster.kubeconfig(f"{name}.conf", api.port), name, is_private=False, settings=(
            f"kube_dra = on\nkube_dra_dir = {self.registry}\nkube_cdi_dir = {self.cdi}\nstate_dir = {directory}/state\n"
            f"watch_tasks = off\n{settings}"), **more)
        self.driver = None
        self.number = 0

    def start(self):
        self.daemon.start()
        self.connect()
        return self

    def connect(self):
        wait_until(lambda: self.socket.exists(), what="the driver's socket")
        if self.driver:
            self.driver.close()
        self.driver = dra.Driver(self.socket)
        wait_until(self.is_there, what="the driver")

    def is_there(self):
        assert self.daemon.is_alive(), self.daemon.log
        try:
            return self.driver.info()
        except dra.grpc.RpcError:
            return None

    def ask(self, op, **more):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(self.daemon.run_dir / "allotd.sock"))
            s.sendall(json.dumps({"version": 1, "op": op, **more}).encode() + b"\n")
            return json.loads(s.makefile().readline())

    def set(self, tenant, *options):
        """allot set"""
        subprocess.run([BUILD / "allot", "set", tenant, "--run-dir", self.daemon.run_dir, *options], check=True,
                       capture_output=True, text=True, timeout=60)

    def cards(self):
        return self.ask("list")["devices"]

    def tenants(self):
        return {tenant["name"]: tenant for tenant in self.ask("list")["tenants"]}

    def specs(self):
        return sorted(path.name for path in self.cdi.iterdir()) if self.cdi.exists() else []

    # ---- what is published ----

    def slices(self):
        """{GPU's name: its slice}, also of slices without devices."""
        return {one["spec"]["pool"]["name"].split("/")[1]: one for one in dra.slices(self.cluster, self.name)}

    def slice(self, index=0):
        name = sorted(card["uuid"].lower() for card in self.cards())[index]
        return wait_until(lambda: self.slices().get(name), what="the slice")

    def devices(self):
        if not self.are_published:
            wait_until(lambda: len(self.slices()) == len(self.cards()), what="a slice for each GPU")
            self.are_published = True
        return {device["name"]: device for one in self.slices().values() for device in one["spec"].get("devices") or []}

    def wait_devices(self, condition, what):
        return wait_until(lambda: condition(found := self.devices()) and found, what=what)

    # ---- claims ----

    def claim(self, *results, config=(), name=None):
        """Makes a claim and allocates it. `results`: (number of the GPU, {capacity}) or (number, {capacity}, request)."""
        self.number += 1
        name = name or f"{self.name}-{self.number}"
        names = sorted(card["uuid"].lower() for card in self.cards())
        found = [dra.result(names[card], f"{self.name}/{names[card]}", *rest, **capacity) for card, capacity, *rest in results]
        requests = sorted({one["request"].split("/")[0] for one in found})
        claim = dra.make_claim(self.cluster, name, [dra.request(one) for one in requests], config)
        return dra.allocate(self.cluster, claim, found, config)

    def kill(self):
        process = self.daemon.processes.pop()
        process.send_signal(signal.SIGKILL)
        process.wait()


@pytest.fixture
def make_node(request, sharing_cluster, tmp_path):
    made, apis = [], []

    def make(settings="", cluster=sharing_cluster, **more):
        """`more`: options of Daemon."""
        name = re.sub("[^a-z0-9]+", "-", request.node.name.lower())[:40].strip("-")
        apis.append(ApiProxy(cluster.port))
        made.append(Node(cluster, apis[-1], tmp_path, name, settings, **more))
        made[-1].api = apis[-1]
        return made[-1].start()

    yield make
    for node in made:
        alive = node.daemon.is_alive()
        if node.driver:
            node.driver.close()
        node.daemon.stop()
        assert alive, node.daemon.log
    for api in apis:
        api.close()


def shares(tenant):
    return [(device["memory_quota_bytes"], device["cores_pct"], device["cores_limit_pct"]) for device in tenant["devices"]]


# ---- registration ----
