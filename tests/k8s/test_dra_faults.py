"""Faults around the DRA driver, and the time to recover: a full disk, a second driver of the same name, a removed socket, a kill
of allotd, an unreachable API server, a reboot. The API server is real; the test allocates claims as a scheduler does.

    ALLOT_AWAY_S=60 build/venv/bin/python -m pytest -s tests/k8s/test_dra_faults.py     seconds that the API server is away

prints how long each recovery took, from the end of the fault. test_dra_kubelet.py has recoveries with a real kubelet."""

import os
import shutil
import subprocess
import time

import pytest

import dra
from machines import wait_until
from dra_node import GIB, make_node, shares, sharing_cluster  # noqa: F401

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the system daemon is root's")

AWAY_S = int(os.environ.get("ALLOT_AWAY_S", "3"))


# ---- a full disk ----

@pytest.fixture
def disk(request, tmp_path):
    """A file system of a node's directory, `cdi` or `state`."""
    disk = tmp_path / request.param
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m,mode=755", "none", disk], check=True)
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


def fill(disk):
    """Leaves nothing. What takes it."""
    filler = disk / "filler"
    fd = os.open(filler, os.O_CREAT | os.O_WRONLY)
    try:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while os.write(fd, bytes(size)):
                    pass
            except OSError:
                pass
    finally:
        os.close(fd)
    return filler


@pytest.mark.parametrize("disk", ["cdi"], indirect=True)
def test_no_room_for_specs(make_node, disk):  # noqa: F811
    """A new claim is refused with the reason, and nothing is left of it; those before stay as they are."""
    node = make_node()
    before, late = node.claim((0, {"memory": "10Gi", "cores": "10"})), node.claim((1, {"memory": "20Gi"}))
    devices = node.driver.prepare(before)
    filler = fill(disk)
    tenants, specs = set(node.tenants()), node.specs()
    with pytest.raises(dra.Refused, match="No space left on device"):
        node.driver.prepare(late)
    assert set(node.tenants()) == tenants and node.specs() == specs
    # As after a restart of the kubelet.
    assert node.driver.prepare(before) == devices
    filler.unlink()
    node.driver.prepare(late)
    assert sorted(map(shares, node.tenants().values())) == [[(10 * GIB, 10, 100)], [(20 * GIB, 0, 100)]]
    node.driver.unprepare(before, late)
    assert not node.tenants() and not node.specs()


@pytest.mark.parametrize("disk", ["state"], indirect=True)
def test_no_room_for_claims(make_node, disk):  # noqa: F811
    """Their log has its length from the beginning: they come, go, and outlive the daemon."""
    node = make_node()
    before, late = node.claim((0, {"memory": "10Gi"})), node.claim((1, {"memory": "20Gi"}))
    node.driver.prepare(before)
    fill(disk)
    node.driver.prepare(late)
    node.driver.unprepare(before)
    node.kill()
    node.start()
    assert [shares(tenant) for tenant in node.tenants().values()] == [[(20 * GIB, 0, 100)]]
    node.driver.unprepare(late)
    assert not node.tenants() and not node.specs()


# ---- two drivers of one name ----

def test_a_second_driver_of_the_name(make_node, tmp_path_factory):  # noqa: F811
    """The first goes on; the second says why it does not serve, writes no slices, and takes over when the first has gone."""
    first = make_node()
    first.wait_devices(lambda found: len(found) == 2, "the devices")
    names = set(first.slices())
    inode = first.socket.stat().st_ino
    directory = tmp_path_factory.mktemp("second")
    second = type(first.daemon)(directory, first.daemon.kubeconfig, first.name, is_private=False, settings=(
        f"kube_dra = on\nkube_dra_dir = {first.registry}\nkube_cdi_dir = {directory}/cdi\nstate_dir = {directory}/state\n"
        "watch_tasks = off\n"), cards="h200x3")
    try:
        second.start()
        wait_until(lambda: "another program listens on this socket" in second.log, what="the second driver's word")
        time.sleep(3)
        assert second.log.count("another program listens on this socket") == 1
        assert first.socket.stat().st_ino == inode and set(first.slices()) == names
        first.driver.prepare(first.claim((0, {"memory": "1Gi"})))
        first.daemon.end()
        wait_until(lambda: first.socket.exists() and len(first.slices()) == 3, what="the second driver's slices")
    finally:
        second.stop()
    first.start()
    wait_until(lambda: set(first.slices()) == names, what="the first driver's slices")
    assert len(first.tenants()) == 1


# ---- recoveries ----

def is_prepared(node, claim):
    """Connects to the driver and calls it, as a kubelet does."""
    try:
        driver = dra.Driver(node.socket)
    except OSError:
        return False
    try:
        return not driver.try_prepare(claim)[claim["metadata"]["uid"]][1]
    except dra.grpc.RpcError:
        return False
    finally:
        driver.close()


def test_a_removed_socket(make_node):  # noqa: F811
    node = make_node()
    node.devices()
    claim = node.claim((0, {"memory": "10Gi"}))
    node.socket.unlink()
    recovery = dra.Recovery("the removal of the driver's socket")
    recovery.wait("the socket", node.socket.exists)
    recovery.wait("a new claim", lambda: is_prepared(node, claim))
    node.connect()
    assert len(node.slices()) == len(node.cards())


def test_the_daemon_is_killed(make_node):  # noqa: F811
    node = make_node()
    node.devices()
    claim = node.claim((0, {"memory": "10Gi"}))
    node.kill()
    assert not is_prepared(node, claim)
    recovery = dra.Recovery("a kill of allotd")
    node.daemon.start()
    recovery.wait("a new claim", lambda: is_prepared(node, claim))
    node.connect()
    assert len(node.slices()) == len(node.cards())


def test_the_api_server_comes_back(make_node):  # noqa: F811
    """A new claim is prepared, and the slices show what has changed meanwhile."""
    node = make_node()
    node.wait_devices(lambda found: len(found) == 2, "the devices")
    claim = node.claim((0, {"memory": "10Gi"}))
    uuid = max(card["uuid"] for card in node.cards())
    node.api.refuse()
    node.ask("cordon", uuid=uuid, cordoned=True)
    until = time.monotonic() + AWAY_S
    while time.monotonic() < until:
        assert not is_prepared(node, claim)
        time.sleep(0.2)
    node.api.accept()
    recovery = dra.Recovery(f"{AWAY_S} s without the API server")
    recovery.wait("a new claim", lambda: is_prepared(node, claim))
    recovery.wait("the slices", lambda: uuid.lower() not in node.devices())


def test_a_reboot(make_node):  # noqa: F811
    """The run directory, the CDI specs and all processes are gone. The claims come back, and the kubelet's next calls succeed."""
    node = make_node()
    before, late = node.claim((0, {"memory": "10Gi"})), node.claim((1, {"memory": "20Gi"}))
    devices = node.driver.prepare(before)
    specs = node.specs()
    node.daemon.stop()
    shutil.rmtree(node.cdi)
    shutil.rmtree(node.daemon.run_dir)
    node.socket.unlink(missing_ok=True)
    recovery = dra.Recovery("a reboot")
    node.daemon.start()
    recovery.wait("the socket", node.socket.exists)
    recovery.wait("a new claim", lambda: is_prepared(node, late))
    node.connect()
    assert node.driver.prepare(before) == devices and set(specs) < set(node.specs())
    recovery.wait("the slices", lambda: len(node.slices()) == len(node.cards()))
    assert sorted(map(shares, node.tenants().values())) == [[(10 * GIB, 0, 100)], [(20 * GIB, 0, 100)]]
