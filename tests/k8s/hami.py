"""Reimplements how HAMi reads annotations that others write, and creates objects as HAMi writes them. The README of
tests/data/hami names the source of each form. Versions are strings: "2.8", "2.10"."""

import datetime
import json
import pathlib
import re
import time

DATA = pathlib.Path(__file__).resolve().parent.parent / "data" / "hami"
REGISTER, SCORE = "hami.io/node-nvidia-register", "hami.io/node-nvidia-score"
HANDSHAKE, LOCK = "hami.io/node-handshake", "hami.io/mutex.lock"
TO_ALLOCATE, ALLOCATED = "hami.io/vgpu-devices-to-allocate", "hami.io/vgpu-devices-allocated"
PHASE, BIND_TIME, NODE = "hami.io/bind-phase", "hami.io/bind-time", "hami.io/vgpu-node"


def recorded(name, **other):
    """The object in a recorded file. `other`: texts to replace in it, such as names and UUIDs."""
    text = (DATA / f"{name}.json").read_text()
    for old, new in other.items():
        text = text.replace(old, new)
    return json.loads(text)


def recorded_gpus(node):
    """The UUIDs of a node's GPUs, by index."""
    text = node["metadata"]["annotations"][REGISTER]
    if not text.startswith("["):
        return [one.split(",")[0] for one in text.split(":") if one]
    return [gpu["id"] for gpu in sorted(json.loads(text), key=lambda gpu: gpu.get("index", 0))]


# ---- how HAMi's scheduler reads a node ----

INT32 = 2 ** 31
FIELDS = {"id": str, "index": int, "count": int, "devmem": int, "devcore": int, "type": str, "numa": int, "mode": str,
          "health": bool, "migProfiles": list, "devicevendor": str, "custominfo": dict}


def read_register(text):
    """UnMarshalNodeDevices: a field of a wrong type or a number out of range is an error; an unknown field is not."""
    gpus = json.loads(text)
    assert isinstance(gpus, list) and gpus
    for gpu in gpus:
        for name, value in gpu.items():
            if name in FIELDS:
                assert type(value) is FIELDS[name], (name, value)
        assert all(-INT32 <= gpu.get(name, 0) < INT32 for name in ("count", "devmem", "devcore"))
        assert gpu.get("index", 0) >= 0
    return gpus


def read_scores(text):
    """DecodePairScores."""
    scores = json.loads(text)
    for one in scores:
        assert isinstance(one["uuid"], str) and all(type(score) is int for score in one["score"].values())
    return scores


def handshake_is_asked(text):
    """CheckHealth: HAMi's scheduler waits for an answer while the annotation has this form."""
    return "Requesting" in text


# ---- how HAMi's device plugin reads a pod ----

RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def read_lock(text):
    """ParseNodeLock: (namespace, pod)."""
    if "," not in text:
        assert RFC3339.fullmatch(text), text
        return "", ""
    since, space, pod = text.split(",")
    assert RFC3339.fullmatch(since), text
    return space, pod


def number(text):
    assert re.fullmatch(r"[+-]?\d+", text) and -INT32 <= int(text) < INT32, text
    return int(text)


def decode_container(text):
    """[(UUID, type, MiB, percent)] of one container. Only parts between ':' that contain a ',' are devices."""
    found = []
    for part in text.split(":"):
        if "," in part:
            fields = part.split(",")
            assert len(fields) >= 4, text
            found.append((fields[0], fields[1], number(fields[2]), number(fields[3])))
    return found


def decode(text, version):
    """DecodePodDevices: v2.8 drops empty containers. v2.10 keeps them, also the one behind the last ';'."""
    containers = [decode_container(part) for part in text.split(";")]
    return [one for one in containers if one] if version == "2.8" else containers


def encode(containers):
    return "".join("".join(f"{gpu},{kind},{mib},{cores}:" for gpu, kind, mib, cores in one) + ";" for one in containers)


class Plugin:
    """HAMi's device plugin on a node, as far as it uses annotations."""

    def __init__(self, cluster, node, version):
        self.cluster = cluster
        self.node = node
        self.version = version

    def find_pod(self):
        """GetPendingPod: the pod that the lock names, otherwise one that waits; None if there is none."""
        lock = self.cluster.annotations(self.node).get(LOCK)
        if lock is not None and read_lock(lock)[1]:
            space, name = read_lock(lock)
            return self.cluster.pod(name, space)
        phases = ("allocating",) if self.version == "2.8" else ("allocating", "success")
        for pod in self.cluster.request("GET", "/api/v1/pods", query=f"?fieldSelector=spec.nodeName={self.node}")["items"]:
            notes = pod["metadata"].get("annotations", {})
            if (pod["status"]["phase"] == "Pending" and BIND_TIME in notes and notes.get(PHASE) in phases
                    and notes.get(NODE) == self.node):
                return pod
        return None

    def allocate(self, count):
        """Answers an Allocate call for `count` devices: (container's name, its devices). Updates the pod's annotations, and
        releases the node's lock after the last container."""
        pod = self.find_pod()
        text = pod["metadata"]["annotations"][TO_ALLOCATE]
        containers = decode(text, self.version)
        place = next(i for i, one in enumerate(containers) if one)
        devices, containers[place] = containers[place], []
        assert len(devices) == count, "device number not matched"
        init = [] if self.version == "2.8" else pod["spec"].get("initContainers", [])
        name = [one["name"] for one in init + pod["spec"]["containers"]][place]
        left = encode(containers)
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        self.cluster.patch(path, {"annotations": {TO_ALLOCATE: left}})
        if "NVIDIA" not in left:
            self.cluster.patch(path, {"annotations": {PHASE: "success"}})
            self.release(pod)
        return name, devices

    def release(self, pod):
        """ReleaseNodeLock: releases the lock only if this pod owns it."""
        node = self.cluster.node(self.node)
        lock = node["metadata"]["annotations"].get(LOCK, "")
        if lock.endswith(f",{pod['metadata']['namespace']},{pod['metadata']['name']}"):
            self.cluster.patch(f"/api/v1/nodes/{self.node}", {
                "annotations": {LOCK: None}, "resourceVersion": node["metadata"]["resourceVersion"]})


def lock_of(pod, hours=8):
    """GenerateNodeLockKeyByPod: with the local time of the scheduler, `hours` east of UTC."""
    zone = datetime.timezone(datetime.timedelta(hours=hours))
    now = datetime.datetime.fromtimestamp(int(time.time()), zone).isoformat()
    return f"{now},{pod['metadata']['namespace']},{pod['metadata']['name']}"
