"""MIG: a GPU in MIG mode is not offered, but its instances are, each with its own memory, time and tenants. A tenant on an
instance sees the same as a container with that one instance."""

import json
import os
import subprocess

import pytest

from machines import BUILD, GIB, make_machine, wait_until
from scrape import address_in, scrape
from servers import start_servers
from plugin_node import ids, make_node  # noqa: F401
from sim_peers import PREAMBLE, start_sim  # noqa: F401
from test_cdi import Devices, edits_of

MIB = 1 << 20
MIG = "mig = 3g.71gb, 2g.35gb, 1g.18gb\n[card]\npci = 0000:2a:00.0\n"


@pytest.fixture
def mig(tmp_path_factory):
    """A machine with two H200: one has instances of 3, 2 and 1 slices, the other none."""
    machine = make_machine(tmp_path_factory, "h200-mig")
    yield machine
    machine.clean()


def topo(machine):
    """The topology; starts a daemon if none runs."""
    return json.loads(machine.allot("topo", "--json", *machine.sim).stdout)


def uuids(machine):
    return [device["uuid"] for device in topo(machine)["devices"]]


UUID_BY = """
import json

def uuid_by(symbol, device=0):
    "The UUID from the driver function `symbol`: the older function returns the GPU's instead of the instance's."
    text = (ctypes.c_ubyte * 16)()
    assert getattr(ctypes.CDLL("libcuda.so.1"), symbol)(ctypes.byref(text), device) == 0
    return bytes(text).hex()
"""


def run_python(machine, python, code, *options, **more):
    """Runs the code in a tenant; returns the JSON value that it prints last."""
    done = machine.run(*options, "--", python, "-c", PREAMBLE + UUID_BY + code, **more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_instances_are_devices(mig):
    topo(mig)
    devices = mig.ps()["devices"]
    assert [d["name"] for d in devices] == [
        "NVIDIA H200 MIG 3g.71gb", "NVIDIA H200 MIG 2g.35gb", "NVIDIA H200 MIG 1g.18gb", "NVIDIA H200"]
    assert [d["uuid"][:4] for d in devices] == ["MIG-", "MIG-", "MIG-", "GPU-"]
    whole = devices[3]["memory_bytes"]
    assert [round(d["memory_bytes"] / whole * 8) for d in devices] == [4, 2, 1, 8]
    reply = topo(mig)
    assert [d["pci"] for d in reply["devices"]] == ["0000:18:00.0"] * 3 + ["0000:2a:00.0"]
    links = {tuple(link["devices"]): link for link in reply["links"]}
    assert links[0, 1]["pcie"] == "PSB" and links[0, 3]["pcie"] == "NODE"
    assert all(link["nvlinks"] == 0 for link in reply["links"])


def test_a_tenant_sees_its_instance_alone(mig, python):
    instance = uuids(mig)[2]
    seen = run_python(mig, python, """
start()
block = ok(cu.cuMemAlloc(256 * MIB))
pynvml.nvmlInit()
free, total = map(int, ok(cu.cuMemGetInfo()))
gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
own = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0)

def code(call, *args):
    try:
        call(*args)
    except pynvml.NVMLError as error:
        return error.value

memory = [pynvml.nvmlDeviceGetMemoryInfo(h) for h in (own, gpu)]
print(json.dumps({
    "cuda": [ok(cu.cuDeviceGetCount()), ok(cu.cuDeviceGetName(96, 0)).split(b"\\0")[0].decode(),
             uuid_by("cuDeviceGetUuid_v2"), uuid_by("cuDeviceGetUuid"), total, total - free],
    "count": pynvml.nvmlDeviceGetCount(),
    "mode": pynvml.nvmlDeviceGetMigMode(gpu),
    "uuid": [pynvml.nvmlDeviceGetUUID(h) for h in (gpu, own)],
    "is": [getattr(i, "value", i) for i in map(pynvml.nvmlDeviceIsMigDeviceHandle, (gpu, own))],
    "name": pynvml.nvmlDeviceGetName(own),
    "index": [pynvml.nvmlDeviceGetIndex(h) for h in (gpu, own)],
    "memory": [[m.total, m.used] for m in memory],
    "ids": [pynvml.nvmlDeviceGetGpuInstanceId(own), pynvml.nvmlDeviceGetComputeInstanceId(own)],
    "processes": [[p.pid, p.usedGpuMemory, p.gpuInstanceId, p.computeInstanceId]
                  for p in pynvml.nvmlDeviceGetComputeRunningProcesses(own)],
    "pid": os.getpid(),
    "others": [code(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu, i) for i in (1, 2, 6, 7)],
    "second": code(pynvml.nvmlDeviceGetHandleByIndex, 1),
}))
""", "--gpu", instance, "--memory", "4GiB")
    digits = instance[4:].replace("-", "")
    count, name, new, old, total, used = seen["cuda"]
    assert (count, name, new) == (1, "NVIDIA H200 MIG 1g.18gb", digits)
    assert old != digits and seen["uuid"] == [f"GPU-{old[:8]}-{old[8:12]}-{old[12:16]}-{old[16:20]}-"
                                              f"{old[20:]}", instance]
    assert total == 4 * GIB and used == (256 + 518) * MIB
    assert seen["count"] == 1 and seen["mode"] == [1, 1] and seen["is"] == [0, 1]
    assert seen["name"] == name and seen["index"] == [0, 0]
    assert seen["memory"] == [[total, used]] * 2
    assert seen["processes"] == [[seen["pid"], used, *seen["ids"]]]
    assert seen["others"] == [6, 6, 6, 2] and seen["second"] == 2


def test_other_devices_are_hidden(mig, python):
    all_uuids = uuids(mig)
    code = """
pynvml.nvmlInit()
found = []
for uuid in %r:
    try:
        pynvml.nvmlDeviceGetHandleByUUID(uuid)
        found.append(uuid)
    except pynvml.NVMLError:
        pass
print(json.dumps(found))
""" % all_uuids
    for i in (0, 1, 3):
        assert run_python(mig, python, code, "--gpu", i, "--memory", "1GiB") == [all_uuids[i]]


@pytest.mark.parametrize("value, found", [("0", 1), ("1", 0), ("{own}", 1), ("{other}", 0)])
def test_visible_devices_count_the_tenants_devices(mig, python, value, found):
    """CUDA_VISIBLE_DEVICES counts the tenant's devices: only this instance. Another tenant's instance is not among them."""
    own, other = uuids(mig)[1], uuids(mig)[0]
    seen = run_python(mig, python, f"""
os.environ["CUDA_VISIBLE_DEVICES"] = {value.format(own=own, other=other)!r}
r = cu.cuInit(0)[0]
names = []
for i in range(ok(cu.cuDeviceGetCount()) if r == 0 else 0):
    names.append(uuid_by("cuDeviceGetUuid_v2", i))
print(json.dumps(names))
""", "--gpu", own, "--memory", "1GiB")
    digits = own[4:].replace("-", "")
    assert (seen == [digits]) == bool(found)


def test_the_quota_holds_on_an_instance(mig, python):
    seen = run_python(mig, python, """
start()
first = cu.cuMemAlloc(1024 * MIB)[0]
second = cu.cuMemAlloc(1024 * MIB)[0]
print(json.dumps([int(first), int(second)]))
""", "--gpu", "2", "--memory", "2GiB")
    assert seen == [0, 2]
    too_much = mig.run("--gpu", "2", "--memory", "18GiB", "--", "true")
    assert too_much.returncode == 125 and "18" in too_much.stderr


def test_instances_do_not_take_turns(mig):
    """Two tenants on one instance each are both charged nearly all of its time, instead of half of the GPU's each."""
    for index in (0, 1):
        mig.start("--gpu", index, "--name", f"on{index}", "--memory", "4GiB", "--",
                  *mig.load("--seconds", 60))
    busy = [lambda t: t["devices"][0]["got_1s_pct"] > 60] * 2
    for name, is_busy in zip(("on0", "on1"), busy):
        mig.wait_for_tenant(name, is_busy)
    wait_until(lambda: all(t["devices"][0]["got_1s_pct"] > 60 for t in mig.tenants().values()),
               what="both at work at once")
    shown = [device["memory_used_bytes"] for device in mig.ps()["devices"]]
    assert shown[0] > 500 * MIB and shown[1] > 500 * MIB and shown[2:] == [0, 0]


def test_a_tenant_has_one_instance_and_no_other_device(mig):
    own, other, small, whole = uuids(mig)
    for list_ in (f"{own},{other}", f"{small},{whole}", "0,3"):
        refused = mig.run("--gpu", list_, "--memory", "1GiB", "--", "true")
        assert refused.returncode == 125
        assert "is a MIG instance" in refused.stderr and "ask for this device only, not for 2 devices" in refused.stderr
    assert mig.run("--gpu", "2", "--memory", "1GiB", "--", "true").returncode == 0


def fault(machine, *arguments):
    """Sends a command of `allot-sim --ctl` to the simulator."""
    subprocess.run([BUILD / "allot-sim", "--ctl", "--socket", machine.run_dir / "sim.sock", *arguments],
                   check=True, capture_output=True, timeout=10)


def test_faults_of_an_instance_and_of_its_gpu(tmp_path_factory, tmp_path):
    machine = make_machine(tmp_path_factory, "h200-mig")
    log = start_servers(machine, tmp_path, "metrics_listen = 127.0.0.1:0\n", card=MIG)
    health = lambda: [device["health"] for device in machine.ps()["devices"]]
    try:
        assert health() == ["healthy"] * 4
        # In the simulator GPUs are numbered first, then their instances. An Xid of an instance concerns that instance only.
        fault(machine, "xid", "3", "95")
        wait_until(lambda: health() == ["healthy", "unhealthy", "healthy", "healthy"],
                   what="the instance to be unhealthy")
        page = scrape(address_in(log))
        assert page.value("allot_device_healthy", device="1") == 0
        assert page.value("allot_device_faults_total", device="1", kind="xid") == 1
        # An Xid that NVML attributes to no instance concerns the whole GPU.
        fault(machine, "xid", "0", "95")
        wait_until(lambda: health() == ["unhealthy"] * 3 + ["healthy"], what="the GPU to be unhealthy")
        assert machine.run("--memory", "1GiB", "--", "true").returncode == 0
        assert "Xid 95" in machine.run("--gpu", "2", "--memory", "1GiB", "--", "true").stderr
    finally:
        machine.clean()


@pytest.mark.skipif(os.geteuid() != 0, reason="the system daemon is root's")
def test_the_kubelet_is_offered_instances(make_node):  # noqa: F811
    node = make_node("h200-mig")
    plugin = node.kubelet.wait_registered()
    instances, whole = node.uuids()[:3], node.uuids()[3]
    assert sorted(node.kubelet.watch.last) == sorted(
        name for uuid in [*instances, whole] for name in ids(uuid, *range(10)))
    bytes_of = {device["uuid"]: device["memory_bytes"] for device in node.listed()["devices"]}
    plugin.allocate(ids(instances[2], 0, 1, 2))
    tenant, = node.tenants()
    device, = tenant["devices"]
    assert device["index"] == 2 and device["cores_pct"] == 30
    assert bytes_of[instances[2]] * .3 - MIB < device["memory_quota_bytes"] <= bytes_of[instances[2]] * .3
    for pair in (ids(instances[0], 0) + ids(instances[1], 0), ids(instances[1], 0) + ids(whole, 0)):
        error = plugin.refused(pair)
        assert "is a MIG instance" in error.details()
    assert len(node.tenants()) == 1
    # The loss of a GPU makes all of its instances unhealthy, and its return makes them healthy.
    def unhealthy():
        return {name.rpartition("-")[0] for name, health in node.kubelet.watch.last.items()
                if health == "Unhealthy"}

    node.sim.ctl("lose", "0")
    wait_until(lambda: unhealthy() == set(instances), what="the loss")
    node.sim.ctl("heal", "0")
    wait_until(lambda: not unhealthy(), what="the return")


def test_a_container_gets_an_instance(mig, tmp_path):
    devices = Devices(mig, tmp_path)
    own = uuids(mig)[1]
    edits_of(devices.create("part", "--gpu", own, "--memory", "4GiB", gpus="GPU 1"), "part")
    claim, = devices.list()["part"]["devices"]
    assert claim["uuid"] == own and claim["index"] == 1
    done = devices.cdi("cards")
    assert done.returncode == 0, done.stderr
    assert [devices.list()[f"gpu{i}"]["devices"][0]["uuid"] for i in range(4)] == uuids(mig)
    devices.remove_all()


def test_a_gpu_without_instances_is_reported(tmp_path_factory, tmp_path):
    machine = make_machine(tmp_path_factory, "h200-mig")
    log = start_servers(machine, tmp_path, "", card="mig = on\n[card]\npci = 0000:2a:00.0\n")
    try:
        assert [device["name"] for device in machine.ps()["devices"]] == ["NVIDIA H200"]
        assert "is in MIG mode and has no instance" in "".join(log)
    finally:
        machine.clean()


def test_a_percentage_of_a_small_instance(mig):
    """A percentage refers to the instance's own SMs, an eighth of the GPU's 132."""
    refused = mig.run("--gpu", "2", "--sharing", "space", "--cores-limit", "5", "--", "true")
    assert refused.returncode == 125 and "5 % of 16 SMs is less than one SM: must be 6.25 % or more" in refused.stderr
    assert mig.run("--gpu", "0", "--sharing", "space", "--cores-limit", "5", "--", "true").returncode == 0
