"""A container for a ResourceClaim. The test calls allot's DRA driver as the kubelet does (NodePrepareResources, with gRPC's own
library), and runc gets the edits of the CDI specification that the driver wrote. The API server is a stand-in
(api_server.py); tests/k8s uses the real one."""

import importlib.util
import json
import os
import tempfile
import time

from checks import api_server
from checks.container import CORES, KERNEL, QUOTA_MIB, Container, check_container, find_runc
from harness.job import Failed
from harness.load import Loads

DRIVER = "gpu.allot.dev"
NODE = "node"
CLAIM = {"metadata": {"name": "third", "namespace": "default", "uid": "5f0c6a1e-2d4b-4c57-9a52-7c1d3f3b8a60",
                      "resourceVersion": "1"}}
PATH = f"{api_server.RESOURCES}/namespaces/default/resourceclaims/third"
SERVICE = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/"
START_S = 20


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out) + bytes([number])


def text(number, value):
    """A field of a protobuf message: a text or a message."""
    value = value if isinstance(value, bytes) else value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def call(grpc, socket, method):
    """The request of NodePrepareResources and NodeUnprepareResources (k8s.io/kubelet, dra/v1): a list with one claim."""
    meta = CLAIM["metadata"]
    claim = text(1, meta["namespace"]) + text(2, meta["uid"]) + text(3, meta["name"])
    with grpc.insecure_channel(f"unix:{socket}") as channel:
        return channel.unary_unary(SERVICE + method)(text(1, claim), timeout=START_S)


def wait_for(condition, what):
    deadline = time.monotonic() + START_S
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise Failed(f"{what} did not come within {START_S} s")
        time.sleep(0.05)
    return found


def allocate(objects):
    """The claim with a part of the first GPU allocated to it, as a scheduler does it."""
    slices = wait_for(lambda: [one for path, one in objects.items() if path.startswith(api_server.SLICES)
                               and one["spec"].get("devices")], "a ResourceSlice with a GPU")
    spec = slices[0]["spec"]
    result = {"request": "gpu", "driver": DRIVER, "pool": spec["pool"]["name"], "device": spec["devices"][0]["name"],
              "shareID": "0d6a5b0e-8f52-4bd9-8b1c-52a3b0a4f3c1",
              "consumedCapacity": {"memory": f"{QUOTA_MIB}Mi", "cores": str(CORES)}}
    terms = {"apiVersion": f"{DRIVER}/v1", "kind": "GpuTerms", "coresLimit": CORES}
    opaque = {"opaque": {"driver": DRIVER, "parameters": terms}}
    request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER}}
    objects[PATH] = {**CLAIM, "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
                     "spec": {"devices": {"requests": [request], "config": [opaque]}},
                     "status": {"allocation": {"devices": {"results": [result],
                                                           "config": [{"source": "FromClaim", **opaque}]}}}}


def read_spec(folder, answer):
    """The CDI device that the answer names, from the specifications in `folder`; these may have no other device."""
    found = []
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            spec = json.load(file)
        found += [spec for device in spec["devices"] if f"{spec['kind']}={device['name']}".encode() in answer]
    if len(found) != 1:
        raise Failed(f"{len(found)} devices of the answer are in {folder}; the answer: {answer}")
    return found[0]


def check_claim(machine, tally, grpc, folder):
    registry, cdi = os.path.join(folder, "registry"), os.path.join(folder, "cdi")
    os.makedirs(registry)
    with api_server.serve() as (objects, port):
        objects[f"{api_server.NODES}/{NODE}"] = {"metadata": {"name": NODE, "uid": "3f6f1d62-6d3f-44a5-9be0-6f2a65d0a6c2",
                                                              "resourceVersion": "1"}}
        config = os.path.join(folder, "kubeconfig")
        with open(config, "w", encoding="utf-8") as file:
            json.dump(api_server.kubeconfig(port), file)
        loads = Loads(machine)
        loads.native_rate(KERNEL)
        with machine.system_daemon(f"kube_api = {config}\nkube_node_name = {NODE}\nkube_dra = on\nwatch_tasks = off\n"
                                   f"kube_dra_dir = {registry}\nkube_cdi_dir = {cdi}\nstate_dir = {folder}/state\n"):
            allocate(objects)
            socket = os.path.join(registry, f"{DRIVER}-reg.sock")
            answer = call(grpc, socket, "NodePrepareResources")
            box = Container(machine, folder, read_spec(cdi, answer))
            tenant, = (t["name"] for t in machine.ps()["tenants"])
            try:
                check_container(machine, tally, box, loads, tenant, "claim")
            finally:
                box.tell("delete", "--force", box.id)
            call(grpc, socket, "NodeUnprepareResources")
            tally.verdict(not machine.ps()["tenants"] and not os.listdir(cdi),
                          "claim: unprepared, its tenant and its CDI specification are gone",
                          f"{len(machine.ps()['tenants'])} tenants; {os.listdir(cdi)}")


def check(machine, tally, options):
    runc, _ = find_runc(machine)
    grpc = importlib.import_module("grpc") if importlib.util.find_spec("grpc") else None
    why = "needs root" if os.geteuid() else "no runc here" if not runc else None if grpc else "no grpcio here"
    if why:
        tally.skip("a container by a ResourceClaim", why)
        return
    with tempfile.TemporaryDirectory(prefix="allot-claim-", dir="/tmp") as folder:
        check_claim(machine, tally, grpc, folder)
