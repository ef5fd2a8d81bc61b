"""The node's part of HAMi's protocol, with a real API server: allotd writes its GPUs to annotations of its Node."""

import json
import os
import re
import time

import pytest

from cluster import ALLOTD_TOKEN, openssl
from daemon import Daemon
from machines import wait_until
from api_proxy import ApiProxy

REGISTER = "hami.io/node-nvidia-register"
HANDSHAKE = "hami.io/node-handshake"
LOCK = "hami.io/mutex.lock"


@pytest.fixture
def proxy(cluster):
    proxy = ApiProxy(cluster.port)
    yield proxy
    proxy.close()


@pytest.fixture
def daemon(request, cluster, proxy, tmp_path):
    """allotd on a node of its own, which exists. It reaches the API server through the proxy."""
    node = re.sub("[^a-z0-9]+", "-", request.node.name.lower()).strip("-")
    cluster.make_node(node, labels={"kept": "yes"})
    daemon = Daemon(tmp_path, cluster.kubeconfig(f"{node}.conf", proxy.port), node)
    daemon.start()
    yield daemon
    alive = daemon.is_alive()
    daemon.stop()
    assert alive, daemon.log


def published_gpus(cluster, daemon):
    return json.loads(cluster.annotations(daemon.node).get(REGISTER, "[]"))


def wait_for_gpus(cluster, daemon):
    return wait_until(lambda: published_gpus(cluster, daemon), what=f"the GPUs on the node; {daemon.log}")


def test_gpus_and_labels_are_published(cluster, daemon):
    gpus = wait_for_gpus(cluster, daemon)
    assert len(gpus) == 2
    for index, gpu in enumerate(gpus):
        assert gpu["id"].startswith("GPU-")
        assert gpu.get("index", 0) == index
        assert gpu["count"] == 10
        assert gpu["devcore"] == 100
        assert 130000 < gpu["devmem"] < 150000
        assert gpu["type"].startswith("NVIDIA")
        assert gpu["mode"] == "hami-core"
        assert gpu["health"] is True
        assert gpu.get("numa") != 0, "HAMi leaves out 0"
    labels = cluster.labels(daemon.node)
    assert labels["gpu"] == "on"
    assert labels["kept"] == "yes"


def test_shutdown_withdraws_the_annotations(cluster, daemon):
    """No pod can be placed on a node without a daemon. Other annotations are kept, and a new daemon publishes again."""
    wait_for_gpus(cluster, daemon)
    cluster.patch(f"/api/v1/nodes/{daemon.node}", {"annotations": {"of-another": "kept"}})
    daemon.end()
    left = cluster.annotations(daemon.node)
    assert left["of-another"] == "kept"
    assert not [name for name in left if "node-nvidia" in name or name == "allot.dev/node-use"]
    daemon.start()
    wait_for_gpus(cluster, daemon)


def test_shutdown_does_not_wait_for_an_unreachable_server(cluster, daemon, proxy):
    wait_for_gpus(cluster, daemon)
    proxy.refuse()
    daemon.end()
    proxy.accept()
    assert published_gpus(cluster, daemon)
    daemon.start()


def test_links_are_published(cluster, tmp_path):
    cluster.make_node("linked")
    daemon = Daemon(tmp_path, cluster.kubeconfig("linked.conf"), "linked", cards="dgx-1v").start()
    try:
        gpus = wait_for_gpus(cluster, daemon)
        scores = {entry["uuid"]: entry["score"]
                  for entry in json.loads(cluster.annotations("linked")["hami.io/node-nvidia-score"])}
    finally:
        daemon.stop()
    assert [gpu.get("numa", 0) for gpu in gpus] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert set(scores) == {gpu["id"] for gpu in gpus}
    for one, others in scores.items():
        assert set(others) == set(scores) - {one}
        assert sum(score // 100 for score in others.values()) == 6, "NVLinks of a V100"
        assert all(score == scores[other][one] and score % 100 >= 10 for other, score in others.items())


def test_changes_by_others_are_reverted(cluster, daemon):
    wait_for_gpus(cluster, daemon)
    good = cluster.annotations(daemon.node)[REGISTER]
    changes = 0
    # A change within two seconds of the previous one is logged, once. A busy machine may need more time for each.
    while changes < 2 or "another program writes" not in daemon.log:
        cluster.patch(f"/api/v1/nodes/{daemon.node}", {"annotations": {REGISTER: None if changes % 2 else "[]", "theirs": "x"},
                                                       "labels": {"gpu": "off"}})
        wait_until(lambda: cluster.annotations(daemon.node).get(REGISTER) == good and
                   cluster.labels(daemon.node)["gpu"] == "on", what="the restored annotation")
        changes += 1
        assert changes < 20
    assert cluster.annotations(daemon.node)["theirs"] == "x"
    assert daemon.log.count("are written") == 1 + changes
    assert daemon.log.count("another program writes") == 1


def test_nothing_is_written_without_a_change(cluster, daemon):
    """Changes of the Node that do not concern allotd, such as the kubelet's heartbeats, cause no write."""
    wait_for_gpus(cluster, daemon)
    for beat in range(5):
        written = cluster.patch(f"/api/v1/nodes/{daemon.node}", {"annotations": {"beat": str(beat)}})
        time.sleep(0.5)
    assert cluster.node(daemon.node)["metadata"]["resourceVersion"] == \
        written["metadata"]["resourceVersion"]
    assert daemon.log.count("are written") == 1
    assert "another program" not in daemon.log


@pytest.mark.parametrize("question", ["Requesting_2026-08-21 10:00:00", "Deleted_2026-08-21 10:00:00"])
def test_handshake_is_answered(cluster, daemon, question):
    wait_for_gpus(cluster, daemon)
    for _ in range(3):
        cluster.patch(f"/api/v1/nodes/{daemon.node}", {"annotations": {HANDSHAKE: question}})
        wait_until(lambda: cluster.annotations(daemon.node)[HANDSHAKE].startswith("Reported_"),
                   what="the answer")


def test_broken_watch_is_restarted(cluster, daemon, proxy):
    wait_for_gpus(cluster, daemon)
    for _ in range(3):
        passed = proxy.passed
        proxy.cut()
        wait_until(lambda: proxy.passed > passed, what="a new connection")
        cluster.patch(f"/api/v1/nodes/{daemon.node}", {"annotations": {REGISTER: "[]"}})
        wait_for_gpus(cluster, daemon)


def test_unreachable_server_is_retried(cluster, daemon, proxy):
    wait_for_gpus(cluster, daemon)
    proxy.refuse()
    cluster.patch(f"/api/v1/nodes/{daemon.node}", {"annotations": {REGISTER: None}})
    # A patch of the Node object that was on its way when connections were cut has a message of its own.
    outages = lambda: re.findall(r"Kubernetes API: .*trying again", daemon.log)  # noqa: E731
    wait_until(outages, what="the warning")
    proxy.accept()
    wait_for_gpus(cluster, daemon)
    wait_until(lambda: "answers" in daemon.log, what="the message that the server answers again")
    assert len(outages()) == 1, "an outage is logged once"


def test_expired_watch_position_leads_to_a_new_list(cluster, daemon, proxy):
    """The server refuses with 410 to continue a watch at a version that etcd has compacted; allotd lists again."""
    wait_for_gpus(cluster, daemon)
    proxy.refuse()
    for value in ("[]", None):
        changed = cluster.patch(f"/api/v1/nodes/{daemon.node}", {"annotations": {REGISTER: value}})
    version = int(changed["metadata"]["resourceVersion"])
    cluster.restart_apiserver(between=lambda: cluster.compact(version))
    proxy.accept()
    wait_for_gpus(cluster, daemon)
    assert "is too old: the list is read again" in daemon.log


def test_restarted_server_is_watched_again(cluster, daemon):
    wait_for_gpus(cluster, daemon)
    cluster.restart_apiserver()
    cluster.patch(f"/api/v1/nodes/{daemon.node}", {"annotations": {REGISTER: "[]"}})
    wait_for_gpus(cluster, daemon)


def test_node_that_is_created_later(cluster, tmp_path):
    daemon = Daemon(tmp_path, cluster.kubeconfig("later.conf"), "later").start()
    try:
        wait_until(lambda: "there is no Node object of that name" in daemon.log, what="the warning")
        cluster.make_node("later")
        wait_for_gpus(cluster, daemon)
        cluster.request("DELETE", "/api/v1/nodes/later")
        wait_until(lambda: daemon.log.count("there is no Node object of that name") == 2, what="the second warning")
        cluster.make_node("later")
        wait_for_gpus(cluster, daemon)
    finally:
        daemon.stop()


def test_client_certificate_from_files(cluster, tmp_path):
    cluster.make_node("by-certificate")
    user = f"client-certificate: {cluster.path('allotd.crt')}\n    client-key: allotd.key"
    authority = "certificate-authority: ca.crt"
    config = cluster.kubeconfig("certificate.conf", user=user, cluster=authority)
    daemon = Daemon(tmp_path, config, "by-certificate").start()
    try:
        wait_for_gpus(cluster, daemon)
    finally:
        daemon.stop()


# Makes the file system view of a pod: the service account's files where the kubelet mounts them.
IN_POD = """
mount -t tmpfs none /run && mkdir -p /var/run/secrets/kubernetes.io/serviceaccount &&
cp "$0" "$1" /var/run/secrets/kubernetes.io/serviceaccount/ && shift && exec "$@"
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a mount namespace of its own")
def test_service_account_in_a_pod(cluster, tmp_path):
    token = tmp_path / "token"
    token.write_text(cluster.account_token())
    cluster.make_node("in-a-pod")
    daemon = Daemon(tmp_path, "in-cluster", "auto", within=["unshare", "-m", "sh", "-c", IN_POD, cluster.path("ca.crt"),
                                                            token],
                    environment={"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(cluster.port),
                                 "NODE_NAME": "in-a-pod"}).start()
    daemon.node = "in-a-pod"
    try:
        wait_for_gpus(cluster, daemon)
    finally:
        daemon.stop()


def test_server_of_an_unknown_authority_gets_no_token(cluster, tmp_path):
    """The certificate check fails before allotd sends its token, and allotd tries again."""
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=stranger",
            "-keyout", cluster.path("stranger.key"), "-out", cluster.path("stranger.crt"))
    config = cluster.kubeconfig("stranger.conf", cluster="certificate-authority: stranger.crt")
    daemon = Daemon(tmp_path, config, "stranger").start()
    try:
        wait_until(lambda: "certificate" in daemon.log and "trying again" in daemon.log, what="the refusal")
        assert daemon.is_alive()
    finally:
        daemon.stop()


def test_unknown_token_is_refused(cluster, tmp_path):
    config = cluster.kubeconfig("unknown.conf", user="token: nobody-knows-this")
    daemon = Daemon(tmp_path, config, "unknown").start()
    try:
        wait_until(lambda: "401" in daemon.log, what="the refusal")
        assert daemon.is_alive()
    finally:
        daemon.stop()


def test_changed_token_file_is_read_again(cluster, tmp_path):
    """The kubelet renews a service account's token, so allotd reads the file for each call."""
    token = cluster.path("changing.token")
    cluster.make_node("changing")
    config = cluster.kubeconfig("changing.conf", user="tokenFile: changing.token")
    daemon = Daemon(tmp_path, config, "changing").start()
    try:
        wait_until(lambda: "changing.token: No such file" in daemon.log, what="the warning")
        token.write_text("not-known-yet\n")
        wait_until(lambda: "401" in daemon.log, what="the refusal")
        token.write_text(ALLOTD_TOKEN + "\n")
        wait_for_gpus(cluster, daemon)
    finally:
        daemon.stop()


@pytest.mark.parametrize("user, what", [
    ("exec:\n      command: aws", "exec: is not supported"),
    ("client-key: allotd.key", "client-certificate is missing, but client-key is given"),
    ("client-certificate: none.crt", "none.crt: No such file"),
    ("client-key-data: '*'", "client-key-data: must be a string in base64"),
])
def test_wrong_kubeconfig_ends_the_daemon(cluster, tmp_path, user, what):
    """The log names the wrong field."""
    daemon = Daemon(tmp_path, cluster.kubeconfig("wrong.conf", user=user), "wrong").start()
    try:
        wait_until(lambda: not daemon.is_alive(), what="the daemon's end")
        assert f"wrong.conf: users 'allotd': {what}" in daemon.log or what in daemon.log, daemon.log
        assert "kube_api: " in daemon.log
    finally:
        daemon.stop()


@pytest.mark.parametrize("api", ["off", "kubeconfig"])
def test_missing_libcurl_matters_only_with_kubernetes(cluster, tmp_path, api):
    """Files of libcurl's names that are no libraries come first in the library path."""
    for name in ("libcurl.so.4", "libcurl-gnutls.so.4"):
        (tmp_path / name).write_text("no library")
    daemon = Daemon(tmp_path, cluster.kubeconfig("any.conf") if api == "kubeconfig" else api, "any",
                    environment={"LD_LIBRARY_PATH": str(tmp_path)}).start()
    try:
        if api == "off":
            wait_until(lambda: "ready: 2 GPUs" in daemon.log, what="the daemon")
            assert daemon.is_alive()
        else:
            wait_until(lambda: not daemon.is_alive(), what="the daemon's end")
            assert "the Kubernetes API needs libcurl" in daemon.log
    finally:
        daemon.stop()


def test_abandoned_binding_is_failed(cluster, daemon):
    """Its bind-time is too old: the phase becomes failed, the lock is released, and an event says why."""
    wait_for_gpus(cluster, daemon)
    gpu = published_gpus(cluster, daemon)[0]["id"]
    now = int(time.time())

    def make(name, bind_time):
        return cluster.make_pod(name, daemon.node, {
            "hami.io/vgpu-node": daemon.node, "hami.io/bind-phase": "allocating",
            "hami.io/bind-time": str(bind_time), "hami.io/vgpu-devices-to-allocate": f"{gpu},NVIDIA,1000,10:;"})

    def phase(name):
        return cluster.pod(name)["metadata"]["annotations"]["hami.io/bind-phase"]

    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now - 290))
    cluster.patch(f"/api/v1/nodes/{daemon.node}", {"annotations": {LOCK: f"{since},default,late"}})
    make("in-time", now)
    make("late", now - 301)
    wait_until(lambda: phase("late") == "failed", what=f"the phase; {daemon.log}")
    wait_until(lambda: LOCK not in cluster.annotations(daemon.node), what="the lock's release")
    wait_until(lambda: [event for event in cluster.events() if event["reason"] == "BindingGivenUp" and
                        event["involvedObject"]["name"] == "late"], what="the event")
    assert phase("in-time") == "allocating"


@pytest.mark.parametrize("ended", ["by its phase", "by the pod's end"])
def test_stale_lock_is_released(cluster, daemon, ended):
    """A daemon that died between the last two writes of a binding leaves a lock. The lock of an unfinished binding is kept."""
    wait_for_gpus(cluster, daemon)
    path = f"/api/v1/nodes/{daemon.node}"
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 60))
    pod = f"left-{ended.count(' ')}"
    cluster.patch(path, {"annotations": {LOCK: f"{since},default,{pod}"}})
    cluster.make_pod(pod, daemon.node, {
        "hami.io/vgpu-node": daemon.node, "hami.io/bind-phase": "allocating",
        "hami.io/bind-time": str(int(time.time())), "hami.io/vgpu-devices-to-allocate": "none,NVIDIA,1000,10:;"})
    time.sleep(3)
    assert LOCK in cluster.annotations(daemon.node)
    if ended == "by its phase":
        cluster.patch(f"/api/v1/namespaces/default/pods/{pod}", {"annotations": {"hami.io/bind-phase": "success"}})
    else:
        cluster.request("PATCH", f"/api/v1/namespaces/default/pods/{pod}/status", {"status": {"phase": "Failed"}},
                        kind="application/merge-patch+json")
    wait_until(lambda: LOCK not in cluster.annotations(daemon.node), what="the lock's release")
    assert daemon.log.count("whose binding has ended: releasing the lock") == 1
