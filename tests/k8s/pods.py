"""A node that runs pods: a real kubelet with containerd and runc, and a real API server. The kubelet and containerd keep
their state in the test's directory, and every process that they start ends with the node."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from cluster import ADMIN_TOKEN, ApiError, free_ports
from machines import wait_until
from engines import HOST, Containerd, version_of
from sandbox import Sandbox, pid_within

CGROUPS = pathlib.Path("/sys/fs/cgroup")
CONTROLLERS = ("cpu", "cpuset", "memory", "pids")
RESOURCE = "nvidia.com/gpu"


def hierarchies():
    """The mount points of cgroups: one for all controllers (version 2), or one for each (version 1)."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return [path for path in CGROUPS.iterdir() if path.is_dir() and not path.is_symlink()]


def why_not():
    """Why no kubelet can run on this machine; None if it can."""
    reason = Containerd.why_not()
    missing = [program for program in ("unshare", "nsenter", "mount", "cc") if not shutil.which(program)]
    if reason or missing:
        return reason or f"no {', no '.join(missing)}"
    if not os.path.exists("/dev/kmsg"):
        return "no /dev/kmsg, which the kubelet reads"
    if hierarchies() == [CGROUPS]:
        given = (CGROUPS / "cgroup.subtree_control").read_text().split()
        short = [name for name in CONTROLLERS if name not in given]
        if short:
            return f"cgroup.subtree_control of {CGROUPS} has no {', no '.join(short)}"
    probe = f"allot-probe-{os.getpid()}"
    try:
        for path in hierarchies():
            (path / probe).mkdir()
            (path / probe).rmdir()
        done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--mount-proc", "true"], capture_output=True,
                              text=True, check=False)
    except OSError as error:
        return f"cgroups can't be made: {error}"
    return done.stderr.strip() or None


class PodEngine(Containerd):
    """containerd for a kubelet, in the sandbox. Its processes end with the sandbox."""

    cgroup = None

    def __init__(self, directory, sandbox):
        self.sandbox = sandbox
        self.specs = directory / "cdi"
        super().__init__(directory)

    @property
    def has_cdi(self):
        return (version_of("containerd") or (0, 0)) >= (1, 7)

    def settings(self):
        return f'enable_cdi = true\ncdi_spec_dirs = ["{self.specs}"]' if self.has_cdi else ""

    def cgroups(self):
        return ()

    def call(self, *command, **more):
        return super().call(*self.sandbox.within(*command), **more)

    def serve(self, *command):
        return super().serve(*self.sandbox.within(*command))

    def start(self):
        # The kubelet requires a network to be configured; the pods use the host's.
        (self.directory / "cni").mkdir()
        (self.directory / "cni/none.conflist").write_text(json.dumps(
            {"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "loopback"}]}))
        super().start()


class RealKubelet:
    def __init__(self, directory, cluster, program, node, gates=None):
        """`gates`: feature gates, {name: True or False}."""
        self.cluster = cluster
        self.gates = gates or {}
        self.program = program
        self.node = node
        self.directory = directory
        self.cgroup = f"allot-kubelet-{os.getpid()}"
        self.process = None
        self.sandbox = Sandbox(directory)
        self.engine = PodEngine(directory / "engine", self.sandbox)

    @property
    def plugins(self):
        return self.sandbox.kubelet_dir / "device-plugins"

    @property
    def registry(self):
        """The folder in which the kubelet finds plugins by their sockets."""
        return self.sandbox.kubelet_dir / "plugins_registry"

    @property
    def pod_resources(self):
        return self.sandbox.kubelet_dir / "pod-resources/kubelet.sock"

    @property
    def log(self):
        return (self.directory / "kubelet.log").read_text(errors="replace")[-3000:]

    def configure(self):
        for path in hierarchies():
            (path / self.cgroup).mkdir()
        port, = free_ports(1)
        (self.directory / "kubelet.json").write_text(json.dumps({
            "kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "address": "127.0.0.1", "port": port, "readOnlyPort": 0, "healthzPort": 0,
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "featureGates": self.gates,
            "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{self.cgroup}", "failCgroupV1": False,
            "failSwapOn": False,
            # The kubelet changes nothing outside the sandbox, and evicts no pod because of what other programs use.
            "enforceNodeAllocatable": [], "makeIPTablesUtilChains": False, "oomScoreAdj": 0,
            "volumePluginDir": str(self.directory / "volume-plugins"), "localStorageCapacityIsolation": False,
            "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%",
                             "imagefs.available": "0%"},
            "imageGCHighThresholdPercent": 100, "enableControllerAttachDetach": False, "resolvConf": "",
            # How often the node's status is written; every 10 s by default.
            "nodeStatusUpdateFrequency": "1s",
            # How soon a pod is tried again whose claims could not be prepared; a minute by default.
            "syncFrequency": "5s"}))

    def start(self):
        self.configure()
        self.engine.start()
        self.launch()
        wait_until(self.is_ready, 120, "the kubelet")
        return self

    def launch(self):
        config = self.cluster.kubeconfig("kubelet.conf", user=f"token: {ADMIN_TOKEN}")
        with open(self.directory / "kubelet.log", "ab") as log:
            self.process = subprocess.Popen(self.sandbox.within(
                self.program, "--config", self.directory / "kubelet.json", "--kubeconfig", config,
                "--hostname-override", self.node, "--root-dir", "/var/lib/kubelet",
                "--container-runtime-endpoint", f"unix://{self.engine.socket}"),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.engine.environment)

    def is_ready(self):
        assert self.process.poll() is None, self.log
        try:
            conditions = self.cluster.node(self.node)["status"].get("conditions", [])
        except ApiError:
            return False
        return ("Ready", "True") in [(one["type"], one["status"]) for one in conditions]

    def allocatable(self, resource=RESOURCE):
        """How many devices of this resource pods may use; -1 if the node does not have the resource."""
        # The API server writes 2000 as "2k".
        count = self.cluster.node(self.node)["status"]["allocatable"].get(resource, "-1")
        return int(count.replace("k", "000"))

    def kill(self):
        """Kills the kubelet. Its pods keep running."""
        os.kill(wait_until(lambda: pid_within(self.process), what="the kubelet's process"), signal.SIGKILL)
        self.process.wait(timeout=20)

    def stop(self):
        self.sandbox.close()
        for process in [*filter(None, [self.process]), *self.engine.processes]:
            process.wait(timeout=20)
        for path in hierarchies():
            top = path / self.cgroup
            for part in sorted(filter(os.path.isdir, top.rglob("*")), reverse=True):
                self.engine.remove_cgroup(part)
            self.engine.remove_cgroup(top)

    # ---- pods ----

    def pod_spec(self, containers, shared):
        """`containers`: {name: ({resource: devices}, command)}. The host's programs and the directory `shared` are mounted
        in each container."""
        volumes = {f"v{i}": (str(path), path != shared) for i, path in enumerate([*HOST, shared])}
        mounts = [{"name": volume, "mountPath": path, "readOnly": is_read_only}
                  for volume, (path, is_read_only) in volumes.items()]
        return {"hostNetwork": True, "automountServiceAccountToken": False, "enableServiceLinks": False,
                "terminationGracePeriodSeconds": 1,
                "volumes": [{"name": volume, "hostPath": {"path": path}} for volume, (path, _) in volumes.items()],
                "containers": [
                    {"name": container, "image": self.engine.image, "imagePullPolicy": "Never",
                     "command": list(map(str, command)), "volumeMounts": mounts, "resources": {"limits": limits}}
                    for container, (limits, command) in containers.items()]}

    def make_pod(self, name, containers, shared, annotations=None):
        return self.cluster.request("POST", "/api/v1/namespaces/default/pods", {
            "metadata": {"name": name, "annotations": annotations or {}},
            "spec": {**self.pod_spec(containers, shared), "nodeName": self.node, "restartPolicy": "Never"}})

    def status(self, name):
        return self.cluster.pod(name)["status"]

    def identity(self, name):
        """Identifies the running containers of a pod: changes if one is started anew. A container's output can be read
        before the API server knows that the container runs, so this waits for it."""
        def running():
            found = self.status(name).get("containerStatuses", [])
            return bool(found) and all("running" in one["state"] for one in found) and found

        return [(one["containerID"], one["restartCount"], one["state"]["running"]["startedAt"])
                for one in wait_until(running, what=f"the containers of {name} running")]

    def pods(self):
        found = self.cluster.request("GET", "/api/v1/namespaces/default/pods")["items"]
        return [pod["metadata"]["name"] for pod in found if pod["spec"].get("nodeName") == self.node]

    def remove_pods(self, *names, seconds=60):
        """Deletes these pods, and waits until the kubelet has reported their end."""
        for name in names:
            self.cluster.request("DELETE", f"/api/v1/namespaces/default/pods/{name}")
        wait_until(lambda: not set(names) & set(self.pods()), seconds, f"the end of {', '.join(names)}")


@contextlib.contextmanager
def running_kubelet(cluster, build_programs, directory, node, gates=None):
    """A kubelet that is ready. Skips the test if none becomes ready: no part of allot is involved so far."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    kubelet = RealKubelet(directory, cluster, build_programs("kubelet") / "kubelet", node, gates)
    try:
        try:
            kubelet.start()
        except (AssertionError, RuntimeError, pytest.fail.Exception) as error:
            pytest.skip(f"no kubelet becomes ready on this machine: {error}")
        yield kubelet
    finally:
        kubelet.stop()


class QuotaPods:
    """Pods of a kubelet whose containers run quota.c, which records the memory that it sees, gets and is refused."""

    def __init__(self, kubelet, shared, program, fits_mib, too_much_mib):
        """`shared`: a directory that is mounted in the containers. The program allocates `fits_mib` on each GPU, and then
        `too_much_mib`, which must fail."""
        self.kubelet, self.shared, self.program = kubelet, shared, program
        self.fits_mib, self.too_much_mib = fits_mib, too_much_mib

    def command(self, out, too_much_mib=None):
        """The program's command line. It writes to the file `out`, and holds its memory until it is ended."""
        return ["/bin/sh", "-c", f"sleep 10000 | {self.program} {self.fits_mib} {too_much_mib or self.too_much_mib} "
                                 f">{self.shared}/{out}"]

    def seen(self, name, container="main"):
        """[MiB of each GPU] that the program in a container saw. Asserts that its first allocation succeeded and its second
        failed. None if it has not finished yet."""
        path = self.shared / f"{name}.{container}"
        lines = path.read_text().splitlines() if path.exists() else []
        if not lines or lines[-1] != "end":
            return None
        found = [re.fullmatch(r"device \d total (\d+) first 0 second 2", line) for line in lines[:-1]]
        assert found and all(found), lines
        return [int(match[1]) for match in found]

    def wait_for(self, name, container="main", seconds=60):
        """seen() as soon as the pod runs. A kubelet whose call failed tries again after its syncFrequency."""
        def seen_while_running():
            status = self.kubelet.status(name)
            assert status["phase"] in ("Pending", "Running"), status
            return status["phase"] == "Running" and self.seen(name, container)
        return wait_until(seen_while_running, seconds, f"pod {name}")
