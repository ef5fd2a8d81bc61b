"""The Python package, installed by pip, against a real daemon on the simulated GPU."""

import errno
import gc
import os
import shutil
import signal
import sys

import pytest

from packages import ROOT, run
from machines import BUILD, wait_until


@pytest.fixture(scope="module")
def allot(tmp_path_factory):
    at = tmp_path_factory.mktemp("python")
    # setuptools writes into the source directory.
    shutil.copytree(ROOT / "python", at / "source")
    run(sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-build-isolation", "--no-deps",
        "--target", at / "installed", at / "source")
    assert (at / "installed/allot/py.typed").exists()
    os.environ["ALLOT_CLIENT_LIBRARY"] = str(BUILD / "liballot-client.so.0")
    sys.path.insert(0, str(at / "installed"))
    try:
        import allot as module
    finally:
        sys.path.pop(0)
    assert str(at) in module.__file__
    return module


@pytest.fixture
def tenant(machine2):
    machine2.start("--gpu", "0,1", "--memory", "2GiB", "--cores", 30, "--name", "a", "--", "sleep", 60)
    machine2.wait_for_tenant("a")
    return machine2


def test_list_agrees_with_allot_ps(allot, tenant):
    with allot.Client(tenant.run_dir) as client:
        now = client.list()
        assert client.daemon == f"allotd {allot.version()}"
    listed = tenant.ps()
    for device, row in zip(now.devices, listed["devices"]):
        assert (device.index, device.uuid, device.name, device.memory_bytes, device.memory_used_bytes) == tuple(
            row[key] for key in ("index", "uuid", "name", "memory_bytes", "memory_used_bytes"))
        assert device.promised_cores_pct == 30 and device.fault is None and device.is_cordoned is False
    a = now.tenant("a")
    assert now.tenant(a.id) is a and a.uid == os.getuid()
    assert [(share.device_index, share.memory_quota_bytes, share.memory_is_given) for share in a.shares] == [
        (0, 2 << 30, True), (1, 2 << 30, True)]
    assert now.json["tenants"][0]["devices"][0]["elastic_reason"]
    with pytest.raises(KeyError):
        now.tenant("nobody")


def test_changes_and_pauses_tenants(allot, tenant):
    client = allot.Client(tenant.run_dir)
    assert client.set("a", device=1, memory_bytes=3 << 30, cores_limit_pct=70, priority=5) == ()
    share = client.list().tenant("a").shares[1]
    assert (share.memory_quota_bytes, share.cores_limit_pct) == (3 << 30, 70)
    tenant.start("--gpu", "1", "--cores", 30, "--name", "b", "--", "sleep", 60)
    tenant.wait_for_tenant("b")
    warning, = client.set("a", device=1, cores_pct=80, cores_limit_pct=80)
    assert "110" in warning
    client.set("b", memory_rest=True)
    assert not client.list().tenant("b").shares[0].memory_is_given
    client.pause("a")
    wait_until(lambda: client.list().tenant("a").state == "paused")
    client.resume("a")
    wait_until(lambda: client.list().tenant("a").state != "paused")
    assert client.request("hello")["simulated"] is True


def test_refusals_raise_errors(allot, tenant):
    with pytest.raises(allot.Error, match="no daemon runs in /nowhere") as caught:
        allot.Client("/nowhere")
    assert caught.value.errno == errno.ENOENT
    client = allot.Client(tenant.run_dir)
    with pytest.raises(allot.Error, match="nobody") as caught:
        client.set("nobody", cores_pct=10)
    assert caught.value.errno == errno.ENOENT
    with pytest.raises(allot.Error) as caught:
        client.set("a", cores_pct=10)  # the tenant has two devices
    assert caught.value.errno == errno.EINVAL
    for wrong in ({"cores_pct": 101}, {"memory_bytes": 0}, {"memory_bytes": 1 << 64}, {"priority": 1 << 32},
                  {"memory_bytes": 1, "memory_rest": True}):
        with pytest.raises(ValueError):
            client.set("a", **wrong)
    with pytest.raises(allot.Error, match="no_such"):
        client.request("no_such")
    for pid in tenant.daemons():
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(allot.Error) as caught:
        client.list()
    assert caught.value.errno == errno.ECONNRESET
    client.close()
    client.close()
    with pytest.raises(ValueError, match="closed"):
        client.list()


def test_no_descriptor_is_leaked(allot, tenant):
    def count():
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    before = count()
    for _ in range(20):
        with allot.Client(tenant.run_dir) as client:
            client.list()
        allot.Client(tenant.run_dir).list()
    assert count() == before
