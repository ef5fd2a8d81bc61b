"""Dynamic Resource Allocation in tests: objects of resource.k8s.io, and the kubelet's calls of a DRA driver, made with
gRPC's own library. It encodes and decodes messages by their field numbers (k8s.io/kubelet, pluginregistration/v1 and
dra/v1), so that it shares no code with the tested driver."""

import os
import time
import uuid

from engines import field
from kubelet import all_of, grpc, take_apart, text_of
from machines import wait_until

DRIVER = "gpu.allot.dev"
API = "/apis/resource.k8s.io/v1"
SOCKET = f"{DRIVER}-reg.sock"
GATES = "DRAConsumableCapacity=true"
if os.environ.get("ALLOT_KUBERNETES") == "newest":
    # Device taints are on by default from 1.36. Tests of them turn them on.
    GATES += ",DRADeviceTaints=false,DRADeviceTaintRules=false"
PATIENCE = 20
# A driver must have recovered this long after the end of a fault.
RECOVERY_S = 10


class Refused(Exception):
    """What a driver says of a claim."""


class Recovery:
    """Measures, from the end of a fault, when the driver works again. Each step is printed, and fails if it comes too late."""

    def __init__(self, fault):
        self.fault = fault
        self.begun = time.monotonic()

    def wait(self, step, condition):
        found = wait_until(condition, 60, f"{step}, after {self.fault}")
        seconds = time.monotonic() - self.begun
        print(f"recovery from {self.fault}: {step} after {seconds:.2f} s")
        assert seconds < RECOVERY_S, f"{step}, after {self.fault}"
        return found


class Driver:
    """A connection to the driver's socket, as the kubelet has one."""

    def __init__(self, path, version="v1"):
        self.channel = grpc.insecure_channel(f"unix:{path}")
        self.service = f"/k8s.io.kubelet.pkg.apis.dra.{version}.DRAPlugin/"

    def call(self, method, message=b"", timeout=PATIENCE):
        return take_apart(self.channel.unary_unary(method)(message, timeout=timeout))

    def info(self):
        fields = self.call("/pluginregistration.Registration/GetInfo")
        return {"type": text_of(fields, 1), "name": text_of(fields, 2), "endpoint": text_of(fields, 3),
                "versions": [version.decode() for version in all_of(fields, 4)]}

    def notify(self, error=""):
        message = field(2, error) if error else field(1, 1)
        return self.call("/pluginregistration.Registration/NotifyRegistrationStatus", message)

    @staticmethod
    def names(claims):
        return b"".join(field(1, field(1, claim["metadata"]["namespace"]) + field(2, claim["metadata"]["uid"]) +
                              field(3, claim["metadata"]["name"])) for claim in claims)

    def answers(self, method, claims):
        """{uid: fields of its answer}"""
        fields = self.call(self.service + method, self.names(claims))
        entries = [take_apart(entry) for entry in all_of(fields, 1)]
        return {text_of(entry, 1): take_apart((all_of(entry, 2) or [b""])[0]) for entry in entries}

    def try_prepare(self, *claims):
        """{uid: ([(requests, pool, device, ids)], error)}"""
        return {uid: ([([name.decode() for name in all_of(device, 1)], text_of(device, 2), text_of(device, 3),
                        [name.decode() for name in all_of(device, 4)])
                       for device in map(take_apart, all_of(answer, 1))], text_of(answer, 2))
                for uid, answer in self.answers("NodePrepareResources", claims).items()}

    def prepare(self, claim):
        """The devices of one claim."""
        (devices, error), = self.try_prepare(claim).values()
        if error:
            raise Refused(error)
        return devices

    def unprepare(self, *claims):
        errors = {uid: text_of(answer, 1) for uid, answer in self.answers("NodeUnprepareResources", claims).items()}
        assert set(errors) == {claim["metadata"]["uid"] for claim in claims}
        for error in filter(None, errors.values()):
            raise Refused(error)

    def close(self):
        self.channel.close()


# ---- objects ----

def path_of(name):
    return f"{API}/namespaces/default/resourceclaims/{name}"


def request(name="gpu", capacity=None, **more):
    """`capacity`: as memory="20Gi", cores="30"."""
    exactly = {"deviceClassName": DRIVER, **({"capacity": {"requests": capacity}} if capacity else {}), **more}
    return {"name": name, "exactly": exactly}


def terms(*requests, **fields):
    """Opaque parameters of a claim or class."""
    return {**({"requests": list(requests)} if requests else {}),
            "opaque": {"driver": DRIVER, "parameters": {"apiVersion": "gpu.allot.dev/v1", "kind": "GpuTerms", **fields}}}


def make_class(cluster, name=DRIVER, config=(), **more):
    cluster.request("POST", f"{API}/deviceclasses", {"metadata": {"name": name}, "spec": {
        "selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}], "config": list(config), **more}})


def make_claim(cluster, name, requests, config=()):
    body = {"metadata": {"name": name}, "spec": {"devices": {"requests": requests, "config": list(config)}}}
    return cluster.request("POST", f"{API}/namespaces/default/resourceclaims", body)


def result(device, pool, name="gpu", **capacity):
    """Of one device, as a scheduler allocates it; no capacity: the whole of it."""
    share = {"shareID": str(uuid.uuid4()), "consumedCapacity": capacity} if capacity else {}
    return {"request": name, "driver": DRIVER, "pool": pool, "device": device, **share}


def allocate(cluster, claim, results, config=()):
    """Writes the allocation as a scheduler does, and returns the claim. `results` is None: removes the allocation."""
    name = claim["metadata"]["name"]
    allocation = None if results is None else {"devices": {
        "results": results, "config": [{"source": "FromClaim", **one} for one in config]}}
    return cluster.request("PATCH", path_of(name) + "/status", {"status": {"allocation": allocation}},
                           kind="application/merge-patch+json")


def slices(cluster, node):
    found = cluster.request("GET", f"{API}/resourceslices")["items"]
    return [one for one in found if one["spec"]["driver"] == DRIVER and one["spec"].get("nodeName") == node]
