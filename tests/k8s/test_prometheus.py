"""The dashboard's view of the cluster: a real Prometheus that scrapes allot-scheduler has data for every panel, and its alerts
report a node whose GPUs are implausible and a node without allotd."""

import json
import time

import pytest

from machines import wait_until
from prometheus import Prometheus, dashboard_queries, find
from test_scheduler import is_ready, nodes, start  # noqa: F401

CLUSTER = "Cluster, as allot-scheduler sees it"


@pytest.mark.skipif(not find("prometheus"), reason="prometheus is missing; scripts/test gets it")
def test_cluster_panels_have_data_and_alerts_fire(cluster, start, nodes, tmp_path):  # noqa: F811
    s = start()
    wait_until(lambda: is_ready(s), what="all nodes and pods being known")
    prometheus = Prometheus(tmp_path / "prometheus", {"allot-scheduler": s.http})
    try:
        pod = cluster.make_pod("watched", limits={"main": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000",
                                                           "nvidia.com/gpucores": "30"}})
        wait_until(lambda: s.bind(pod, nodes[0]) == "" or
                   cluster.pod("watched")["spec"].get("nodeName"), what="the pod being bound")
        register = json.dumps([{"id": "GPU-bad", "count": 10, "devmem": -5, "devcore": 100, "type": "NVIDIA-H200",
                                "health": True}])
        cluster.make_node("watched-implausible", {"hami.io/node-nvidia-register": register,
                                           "hami.io/node-handshake":
                                               "Reported_" + time.strftime("%Y-%m-%d %H:%M:%S")})
        queries = {panel: expression for panel, expression in dashboard_queries().items() if panel[0] == CLUSTER}
        assert len(queries) >= 10

        def query(expression):
            # Rates need requests.
            s.post("/filter", {"Pod": pod, "NodeNames": nodes})
            return prometheus.query(expression)

        for panel, expression in queries.items():
            wait_until(lambda: query(expression), what=f"data for {panel}")
        name, = {labels["pod"] for labels, _ in prometheus.query('hami_vgpu_memory_allocated_bytes{pod="watched"}')}
        assert name == "watched"
        prometheus.wait_for_alert("AllotNodeAside")
        # The scheduler knows the node's GPUs, but Prometheus has no metrics of its daemon.
        prometheus.wait_for_alert("AllotNodeWithoutArbiter", node=nodes[0])
        prometheus.wait_for_data("max(allot_scheduler_pods) >= 1", "the pod")
    finally:
        prometheus.stop()
