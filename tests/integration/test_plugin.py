"""allotd's device plugin: registration with a test kubelet, its settings, and the health of its devices."""

import os
import shutil
import socket
import statistics
import subprocess
import time

import pytest
from machines import wait_until
from held import can_mount
from kubelet import PATIENCE, grpc
from plugin_node import ENDPOINT, ids, make_node  # noqa: F401
from sim_peers import start_sim  # noqa: F401

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the system daemon is root's")


# ---- registration ----

def test_registration(make_node):  # noqa: F811
    node = make_node()
    plugin = node.kubelet.wait_registered()
    (_, first), = node.kubelet.registrations
    assert first[1] == b"v1beta1" and first[2] == ENDPOINT.encode()
    assert first[3] == b"nvidia.com/gpu" and first["options"] == {2: 1}
    devices = node.kubelet.watch.last
    assert sorted(devices) == sorted(
        name for uuid in node.uuids() for name in ids(uuid, *range(10)))
    assert set(devices.values()) == {"Healthy"} and all(len(name) <= 63 for name in devices)
    assert plugin.options() == {2: 1}
    assert (node.plugins / ENDPOINT).stat().st_mode & 0o777 == 0o600
    wait_until(lambda: node.page().value("allot_plugin_registered") == 1, what="the metric")
    page = node.page()
    assert page.value("allot_plugin_watchers") == 1
    assert page.value("allot_plugin_devices") == page.value("allot_plugin_devices_healthy") == 20
    # A daemon that ends removes its socket.
    node.end()
    assert not (node.plugins / ENDPOINT).exists()
    wait_until(lambda: node.kubelet.watch.error, what="the stream's end")


def test_another_program_serves_the_socket(make_node):  # noqa: F811
    """The plugin leaves that socket alone and logs one warning. It registers when the other program has ended."""
    node = make_node(log_level="info")
    node.kubelet.wait_registered()
    path = node.plugins / ENDPOINT
    with socket.socket(socket.AF_UNIX) as other:
        path.unlink()
        other.bind(str(path))
        other.listen()
        wait_until(lambda: "another program listens on this socket" in node.log.read_text(), PATIENCE, "the warning")
        inode = path.stat().st_ino
        time.sleep(2.5)
        assert path.stat().st_ino == inode and node.log.read_text().count("another program listens on this socket") == 1
    node.kubelet.wait_registered(2)


def test_plugin_registers_with_each_new_kubelet(make_node):  # noqa: F811
    """Also with a kubelet that starts later, one that finds the socket of an earlier kubelet, and one that removes the plugin's
    socket."""
    node = make_node(kubelet=False)
    node.kubelet.start()
    node.kubelet.wait_registered()
    took = []
    for again in range(2, 8):
        node.kubelet.stop()
        if again % 2:
            node.kubelet.path.unlink(missing_ok=True)
        node.kubelet.start()
        node.kubelet.wait_registered(again)
        took.append(node.kubelet.registrations[-1][0] - node.kubelet.started)
    print(f"registered again after {1000 * statistics.median(took):.1f} ms, "
          f"at most {1000 * max(took):.1f}")
    assert not node.kubelet.errors
    wait_until(lambda: node.page().value("allot_plugin_registered") == 1, what="the metric")


def test_refused_registration_is_retried(make_node):  # noqa: F811
    node = make_node(kubelet=False)
    node.kubelet.refusal = "resource is taken, 100 %"
    node.kubelet.start()
    wait_until(lambda: node.page().value("allot_plugin_registration_failures_total") >= 3,
               PATIENCE, "some refusals")
    assert node.page().value("allot_plugin_registered") == 0
    # The refusal is logged once, although each attempt fails.
    assert node.log.read_text().count("the kubelet refuses the device plugin: resource is taken, 100 %") == 1
    node.kubelet.refusal = None
    node.kubelet.wait_registered()


def test_plugin_without_watcher_registers_again(make_node):  # noqa: F811
    node = make_node()
    node.kubelet.wait_registered()
    node.kubelet.watch.cancel()
    node.kubelet.wait_registered(2)
    # It also does so when its socket is removed.
    (node.plugins / ENDPOINT).unlink()
    node.kubelet.wait_registered(3)
    assert node.kubelet.plugin.options() == {2: 1}


def test_plugin_directory_appears_later_and_is_moved(make_node):  # noqa: F811
    node = make_node(kubelet=False, kube_plugin_dir="/nowhere")
    node.end()
    node.plugins.rmdir()
    node.config.write_text(node.config.read_text().replace("/nowhere", str(node.plugins)))
    node.start()
    wait_until(lambda: f"{node.plugins}: can't be watched for the kubelet's socket: No such file" in node.log.read_text(),
               what="the log line")
    node.plugins.mkdir()
    node.kubelet.start()
    node.kubelet.wait_registered()
    node.kubelet.stop()
    node.plugins.rename(node.directory / "away")
    wait_until(lambda: node.page().value("allot_plugin_registered") == 0, what="the plugin to notice the loss")
    node.plugins.mkdir()
    node.kubelet.start()
    node.kubelet.wait_registered(2)


def replace_by_symlink(node):
    """As volumes of ConfigMaps and Secrets are updated: the directory is a symbolic link, whose target changes atomically."""
    before, after = node.directory / "before", node.directory / "after"
    node.plugins.rename(before)
    node.plugins.symlink_to(before)
    node.kubelet.start()
    node.kubelet.wait_registered(len(node.kubelet.registrations) + 1)
    node.kubelet.stop()
    after.mkdir()
    (node.directory / "next").symlink_to(after)
    (node.directory / "next").rename(node.plugins)


def replace_by_directory(node):
    """The plugin's own socket keeps the removed directory in use."""
    shutil.rmtree(node.plugins)
    node.plugins.mkdir()


@pytest.mark.parametrize("replace", [replace_by_directory, replace_by_symlink])
def test_plugin_directory_is_replaced(make_node, replace):  # noqa: F811
    node = make_node()
    node.kubelet.wait_registered()
    node.kubelet.stop()
    replace(node)
    registrations = len(node.kubelet.registrations)
    node.kubelet.start()
    node.kubelet.wait_registered(registrations + 1)
    assert node.kubelet.plugin.options() == {2: 1}


def test_mounted_plugin_directory_is_replaced(make_node):  # noqa: F811
    """As in the container of a DaemonSet. Only a new mount leads to the kubelet's new directory, so the daemon ends."""
    if not can_mount():
        pytest.skip("no mount namespace can be made here")
    node = make_node(kubelet=False)
    node.end()
    mounted = node.directory / "mounted"
    mounted.mkdir()
    node.config.write_text(node.config.read_text().replace(str(node.plugins), str(mounted)))
    node.within = ("unshare", "--mount", "sh", "-c", f'mount --bind {node.plugins} {mounted} && exec "$@"', "sh")
    node.kubelet.start()
    node.start()
    node.kubelet.wait_registered()
    node.kubelet.stop()
    replace_by_directory(node)
    assert node.daemon.wait(timeout=PATIENCE) == 0
    assert f"{mounted} was removed on the host" in node.log.read_text()
    node.kubelet.start()
    node.start()
    node.kubelet.wait_registered(2)


def refused_settings(node, *arguments, **settings):
    """Starts the daemon with these settings, which must fail. Returns its error output."""
    node.end()
    lines = {"kube_plugin": "on", "kube_plugin_dir": node.plugins, **settings}
    node.config.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    done = subprocess.run([*node.command(), *arguments], capture_output=True, text=True,
                          timeout=20, check=False)
    assert done.returncode != 0
    return done.stderr


def test_invalid_settings(make_node):  # noqa: F811
    node = make_node(kubelet=False)
    long = "/" + "x" * 92
    assert f"'{long}': must be at most" in refused_settings(node, kube_plugin_dir=long)
    assert "'plugins': must be a full path" in refused_settings(node, kube_plugin_dir="plugins")
    assert "'gpu': must be a domain and a name" in refused_settings(node, kube_resource="gpu")
    assert "a whole number from 1 to 100" in refused_settings(node, kube_slices=101)
    assert "must be soft or hard" in refused_settings(node, kube_slice_limit="firm")
    assert "must be off in a private daemon" in refused_settings(node, "--private")
    gpu_manager = {"kube_vocabulary": "gpu-manager", "kube_api": "/nowhere"}
    assert "gpu-manager: kube_api must not be off" in refused_settings(node, kube_vocabulary="gpu-manager")
    assert "kube_core_resource: 'core': must be a domain" in refused_settings(node, **gpu_manager, kube_core_resource="core")
    assert "kube_memory_resource: 'vcuda-core': must differ from the name in kube_core_resource" in \
        refused_settings(node, **gpu_manager, kube_memory_resource="a.b/vcuda-core")
    assert "must be slices, hami or gpu-manager" in refused_settings(node, kube_vocabulary="other")


def test_devices_list_their_numa_node(make_node):  # noqa: F811
    """As the daemon has it from the driver, for the kubelet's topology manager."""
    node = make_node("dgx-a100", kube_slices=2)
    wait_until(lambda: node.kubelet.watch and node.kubelet.watch.last, PATIENCE, "the devices")
    topology = node.ask("topology")["devices"]
    assert len({device["numa"] for device in topology}) > 1
    assert node.kubelet.watch.numa == {f"{device['uuid']}-{number}": [device["numa"]]
                                       for device in topology for number in range(2)}


def test_whole_gpus_only(make_node):  # noqa: F811
    """Set by share-mode, gpu-manager's name of the setting."""
    node = make_node(kube_slices=7, **{"share-mode": "false"})
    wait_until(lambda: node.kubelet.watch and node.kubelet.watch.last, PATIENCE, "the devices")
    assert sorted(node.kubelet.watch.last) == sorted(f"{uuid}-0" for uuid in node.uuids())
    node.kubelet.plugin.allocate(ids(node.uuids()[0], 0))
    (tenant,) = node.tenants()
    assert tenant["devices"][0]["cores_pct"] == 100


# ---- health ----

def test_lost_gpu_is_unhealthy_until_it_returns(make_node):  # noqa: F811
    node = make_node()
    plugin = node.kubelet.wait_registered()
    first, second = node.uuids()
    others = [plugin.watch() for _ in range(20)]
    wait_until(lambda: all(watch.lists for watch in others), PATIENCE, "their lists")
    before = time.monotonic()
    node.sim.ctl("lose", "0")

    def unhealthy(watch):
        return {name.rpartition("-")[0] for name, health in watch.last.items()
                if health == "Unhealthy"}

    wait_until(lambda: unhealthy(node.kubelet.watch) == {first}, PATIENCE, "the loss")
    print(f"a lost GPU is unhealthy after {time.monotonic() - before:.1f} s")
    wait_until(lambda: all(unhealthy(watch) == {first} for watch in others), PATIENCE, "the loss, for all")
    assert len(node.kubelet.watch.last) == 20
    error = plugin.refused(ids(first, 0))
    assert error.code() == grpc.StatusCode.UNAVAILABLE and f"{first}: GPU 0 is not healthy" in error.details()
    assert node.page().value("allot_plugin_devices_healthy") == 10
    node.sim.ctl("heal", "0")
    wait_until(lambda: unhealthy(node.kubelet.watch) == set(), PATIENCE, "the return")
    for watch in others:
        wait_until(lambda: unhealthy(watch) == set(), PATIENCE, "the return, for all")
        watch.cancel()
    wait_until(lambda: node.page().value("allot_plugin_watchers") == 1, what="the end of their streams")
    assert plugin.allocate(ids(first, 0)) and second


def test_gpu_with_hardware_error_is_unhealthy(make_node):  # noqa: F811
    """Xid 48 is a memory error that the GPU cannot correct. Xid 31 is an invalid address of a program, and does not count."""
    node = make_node()
    node.kubelet.wait_registered()
    _, second = node.uuids()

    def unhealthy():
        return {name.rpartition("-")[0] for name, health in node.kubelet.watch.last.items()
                if health == "Unhealthy"}

    node.sim.ctl("xid", "0", "31")
    node.sim.ctl("xid", "1", "48")
    wait_until(lambda: unhealthy() == {second}, PATIENCE, "the error")
    assert "GPU 1: Xid 48" in node.log.read_text()
    # It still answers, but is unhealthy until an administrator uncordons it.
    time.sleep(3.5)
    assert unhealthy() == {second}
    assert node.ask("cordon", index=1, cordoned=False)["ok"]
    wait_until(lambda: not unhealthy(), PATIENCE, "its return")
    # A cordoned GPU is unhealthy, too.
    assert node.ask("cordon", index=0)["ok"]
    wait_until(lambda: len(unhealthy()) == 1 and unhealthy() != {second}, PATIENCE, "the cordon")
    assert node.ask("cordon", index=0, cordoned=False)["ok"]
    wait_until(lambda: not unhealthy(), PATIENCE, "its end")
