"""The node's part of HAMi's protocol, against a real API server: allotd writes its devices to annotations of its Node."""

import json
import os
import re
import time

import pytest

from cluster import ALLOTD_TOKEN, openssl
from daemon import Daemon
from machines import wait_until
from door import Door

REGISTER = "hami.io/node-nvidia-register"
HANDSHAKE = "hami.io/node-handshake"
LOCK = "hami.io/mutex.lock"


@pytest.fixture
def door(cluster):
    door = Door(cluster.port)
    yield door
    door.close()


@pytest.fixture
def daemon(request, cluster, door, tmp_path):
    """On a node of the test's own, which is there; through the door."""
    node = re.sub("[^a-z0-9]+", "-", request.node.name.lower()).strip("-")
    cluster.make_node(node, labels={"kept": "yes"})
    daemon = Daemon(tmp_path, cluster.kubeconfig(f"{node}.conf", door.port), node)
    daemon.start()
    yield daemon
    alive = daemon.is_alive()
    daemon.stop()
    assert alive, daemon.log


def cards_of(cluster, daemon):
    return json.loads(cluster.annotations(daemon.node).get(REGISTER, "[]"))


def wait_for_cards(cluster, daemon):
    return wait_until(lambda: cards_of(cluster, daemon), what=f"the cards on the node; {daemon.log}")


def test_cards_and_labels_are_published(cluster, daemon):
    cards = wait_for_cards(cluster, daemon)
    assert len(cards) == 2
    for index, card in enumerate(cards):
        assert card["id"].startswith("GPU-")
        assert card.get("index", 0) == index
        assert card["count"] == 10
        assert card["devcore"] == 100
        assert 130000 < card["devmem"] < 150000
        assert card["type"].startswith("NVIDIA")
        assert card["mode"] == "hami-core"
        assert card["health"] is True
        assert card.get("numa") != 0, "0 is left out"
    labels = cluster.labels(daemon.node)
    assert labels["gpu"] == "on"
    assert labels["kept"] == "yes"


def test_an_end_takes_back_what_was_published(cluster, daemon):
    """No pod is placed on a node without a daemon; what others wrote stays, and another daemon publishes anew."""
    wait_for_cards(cluster, daemon)
    cluster.patch(f"/api/v1/nodes/{daemon.node}", {"annotations": {"of-another": "stays"}})
    daemon.end()
    left = cluster.annotations(daemon.node)
    assert left["of-another"] == "stays"
    assert not [name for name in left if "node-nvidia" in name or name == "allot.dev/node-use"]
    daemon.start()
    wait_for_cards(cluster, daemon)


def test_an_end_does_not_wait_for_a_server_that_is_away(cluster, daemon, door):
    wait_for_cards(cluster, daemon)
    door.shut()
    daemon.end()
    door.unshut()
    assert cards_of(cluster, daemon)
    daemon.start()


def test_links_are_published(cluster, tmp_path):
    cluster.make_node("linked")
    daemon = Daemon(tmp_path, cluster.kubeconfig("linked.conf"), "linked", cards="dgx-1v").start()
    try:
        cards = wait_for_cards(cluster, daemon)
        scores = {entry["uuid"]: entry["score"]
                  for entry in json.loads(cluster.annotations("linked")["hami.io/node-nvidia-score"])}
    finally:
        daemon.stop()
    assert [card.get("numa", 0) for card in cards] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert set(scores) == {card["id"] for card in cards}
    for one, others in scores.items():
        assert set(others) == set(scores) - {one}
        assert sum(score // 100 for score in others.values()) == 6, "NVLinks of a V100"
        assert all(score == scores[other][one] and score % 100 >= 10 for other, score in others.items())


def test_what_others_change_is_put_back(cluster, daemon):
    wait_for_cards(cluster, daemon)
    good = cluster.annotations(daemon.node)[REGISTER]
    changes = 0
    # A change within two seconds of the one before is told of, once. A busy machine may take longer for each.
    while changes < 2 or "another program writes" not in daemon.log:
        cluster.patch(f"/api/v1/nodes/{daemon.node}", {"annotations": {REGISTER: None if changes % 2 else "[]", "theirs": "x"},
                                                       "labels": {"gpu": "off"}})
        wait_until(lambda: cluster.annotations(daemon.node).get(REGISTER) == good and
                   cluster.labels(daemon.node)["gpu"] == "on", what="the annotation, put back")
        changes += 1
        assert changes < 20
    assert cluster.annotations(daemon.node)["theirs"] == "x"
    assert daemon.log.count("are written") == 1 + changes
    assert daemon.log.count("another program writes") == 1


def test_nothing_is_written_without_a_change(cluster, daemon):
    """Heartbeats of the kubelet, say, are no reason to write."""
    wait_for_cards(cluster, daemon)
    for beat in range(5):
        written = cluster.patch(f"/api/v1/nodes/{daemon.node}", {"annotations": {"beat": str(beat)}})
        time.sleep(0.5)
    assert cluster.node(daemon.node)["metadata"]["resourceVersion"] == \
        written["metadata"]["resourceVersion"]
    assert daemon.log.count("are written") == 1
    assert "another program" not in daemon.log


@pytest.mark.parametrize("question", ["Requesting_2026-08-21 10:00:00", "Deleted_2026-08-21 10:00:00"])
def test_handshake_is_answered(cluster, daemon, question):
    wait_for_cards(cluster, daemon)
    for _ in range(3):
        cluster.patch(f"/api/v1/nodes/{daemon.node}", {"annotations": {HANDSHAKE: question}})
        wait_until(lambda: cluster.annotations(daemon.node)[HANDSHAKE].startswith("Reported_"),
                   what="the answer")


def test_broken_watch_is_begun_again(cluster, daemon, door):
    wait_for_cards(cluster, daemon)
    for _ in range(3):
        passed = door.passed
        door.cut()
        wait_until(lambda: door.passed > passed, what="a new connection")
        cluster.patch(f"/api/v1/nodes/{daemon.node}", {"annotations": {REGISTER: "[]"}})
        wait_for_cards(cluster, daemon)


def test_server_that_is_away_is_waited_for(cluster, daemon, door):
    wait_for_cards(cluster, daemon)
    door.shut()
    cluster.patch(f"/api/v1/nodes/{daemon.node}", {"annotations": {REGISTER: None}})
    wait_until(lambda: "trying again" in daemon.log, what="the complaint")
    door.unshut()
    wait_for_cards(cluster, daemon)
    wait_until(lambda: "answers" in daemon.log, what="the all-clear")
    assert daemon.log.count("trying again") == 1, "one outage is one line"


def test_place_that_the_server_forgot(cluster, daemon, door):
    """A watch that goes on from what etcd has forgotten is refused with 410: a list begins anew."""
    wait_for_cards(cluster, daemon)
    door.shut()
    for value in ("[]", None):
        changed = cluster.patch(f"/api/v1/nodes/{daemon.node}", {"annotations": {REGISTER: value}})
    version = int(changed["metadata"]["resourceVersion"])
    cluster.restart_apiserver(between=lambda: cluster.compact(version))
    door.unshut()
    wait_for_cards(cluster, daemon)
    assert "is too old: listed anew" in daemon.log


def test_restart_of_the_server(cluster, daemon):
    wait_for_cards(cluster, daemon)
    cluster.restart_apiserver()
    cluster.patch(f"/api/v1/nodes/{daemon.node}", {"annotations": {REGISTER: "[]"}})
    wait_for_cards(cluster, daemon)


def test_node_that_comes_later(cluster, tmp_path):
    daemon = Daemon(tmp_path, cluster.kubeconfig("later.conf"), "later").start()
    try:
        wait_until(lambda: "there is no Node object of that name" in daemon.log, what="the complaint")
        cluster.make_node("later")
        wait_for_cards(cluster, daemon)
        cluster.request("DELETE", "/api/v1/nodes/later")
        wait_until(lambda: daemon.log.count("there is no Node object of that name") == 2, what="the second complaint")
        cluster.make_node("later")
        wait_for_cards(cluster, daemon)
    finally:
        daemon.stop()


def test_client_certificate_in_files(cluster, tmp_path):
    """And what can't be: told at the start, in a line that names the field."""
    cluster.make_node("by-certificate")
    user = f"client-certificate: {cluster.path('allotd.crt')}\n    client-key: allotd.key"
    authority = "certificate-authority: ca.crt"
    config = cluster.kubeconfig("certificate.conf", user=user, cluster=authority)
    daemon = Daemon(tmp_path, config, "by-certificate").start()
    try:
        wait_for_cards(cluster, daemon)
    finally:
        daemon.stop()


# A pod's view: the account's files where the kubelet mounts them.
IN_POD = """
mount -t tmpfs none /run && mkdir -p /var/run/secrets/kubernetes.io/serviceaccount &&
cp "$0" "$1" /var/run/secrets/kubernetes.io/serviceaccount/ && shift && exec "$@"
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a mount namespace of its own")
def test_service_account_of_a_pod(cluster, tmp_path):
    token = tmp_path / "token"
    token.write_text(cluster.account_token())
    cluster.make_node("in-a-pod")
    daemon = Daemon(tmp_path, "in-cluster", "auto", within=["unshare", "-m", "sh", "-c", IN_POD, cluster.path("ca.crt"),
                                                            token],
                    environment={"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(cluster.port),
                                 "NODE_NAME": "in-a-pod"}).start()
    daemon.node = "in-a-pod"
    try:
        wait_for_cards(cluster, daemon)
    finally:
        daemon.stop()


def test_wrong_authority(cluster, tmp_path):
    """A server that nobody vouches for gets no token."""
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=stranger",
            "-keyout", cluster.path("stranger.key"), "-out", cluster.path("stranger.crt"))
    config = cluster.kubeconfig("stranger.conf", cluster="certificate-authority: stranger.crt")
    daemon = Daemon(tmp_path, config, "stranger").start()
    try:
        wait_until(lambda: "certificate" in daemon.log and "trying again" in daemon.log, what="the refusal")
        assert daemon.is_alive()
    finally:
        daemon.stop()


def test_token_that_is_not_known(cluster, tmp_path):
    config = cluster.kubeconfig("unknown.conf", user="token: nobody-knows-this")
    daemon = Daemon(tmp_path, config, "unknown").start()
    try:
        wait_until(lambda: "401" in daemon.log, what="the refusal")
        assert daemon.is_alive()
    finally:
        daemon.stop()


def test_token_that_changes(cluster, tmp_path):
    """As the kubelet changes that of a service account: it is read again for each call."""
    token = cluster.path("changing.token")
    cluster.make_node("changing")
    config = cluster.kubeconfig("changing.conf", user="tokenFile: changing.token")
    daemon = Daemon(tmp_path, config, "changing").start()
    try:
        wait_until(lambda: "changing.token: No such file" in daemon.log, what="the complaint")
        token.write_text("not-known-yet\n")
        wait_until(lambda: "401" in daemon.log, what="the refusal")
        token.write_text(ALLOTD_TOKEN + "\n")
        wait_for_cards(cluster, daemon)
    finally:
        daemon.stop()


@pytest.mark.parametrize("user, what", [
    ("exec:\n      command: aws", "exec: is not supported"),
    ("client-key: allotd.key", "client-certificate is missing, but client-key is given"),
    ("client-certificate: none.crt", "none.crt: No such file"),
    ("client-key-data: '*'", "client-key-data: must be a string in base64"),
])
def test_kubeconfig_that_is_wrong(cluster, tmp_path, user, what):
    daemon = Daemon(tmp_path, cluster.kubeconfig("wrong.conf", user=user), "wrong").start()
    try:
        wait_until(lambda: not daemon.is_alive(), what="the end")
        assert f"wrong.conf: users 'allotd': {what}" in daemon.log or what in daemon.log, daemon.log
        assert "kube_api: " in daemon.log
    finally:
        daemon.stop()


@pytest.mark.parametrize("api", ["off", "kubeconfig"])
def test_machine_without_libcurl(cluster, tmp_path, api):
    """Files of its name that are no library stand before it."""
    for name in ("libcurl.so.4", "libcurl-gnutls.so.4"):
        (tmp_path / name).write_text("no library")
    daemon = Daemon(tmp_path, cluster.kubeconfig("any.conf") if api == "kubeconfig" else api, "any",
                    environment={"LD_LIBRARY_PATH": str(tmp_path)}).start()
    try:
        if api == "off":
            wait_until(lambda: "ready: 2 GPUs" in daemon.log, what="the daemon")
            assert daemon.is_alive()
        else:
            wait_until(lambda: not daemon.is_alive(), what="the end")
            assert "the Kubernetes API needs libcurl" in daemon.log
    finally:
        daemon.stop()


def test_binding_that_nobody_ends(cluster, daemon):
    """Its bind-time is too old: the phase is failed, the lock is free, and kubectl describe says why."""
    wait_for_cards(cluster, daemon)
    card = cards_of(cluster, daemon)[0]["id"]
    now = int(time.time())

    def make(name, bind_time):
        return cluster.make_pod(name, daemon.node, {
            "hami.io/vgpu-node": daemon.node, "hami.io/bind-phase": "allocating",
            "hami.io/bind-time": str(bind_time), "hami.io/vgpu-devices-to-allocate": f"{card},NVIDIA,1000,10:;"})

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
def test_lock_that_was_left(cluster, daemon, ended):
    """By a daemon that died between the last two writes of a binding. A lock of one that goes on stays."""
    wait_for_cards(cluster, daemon)
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
