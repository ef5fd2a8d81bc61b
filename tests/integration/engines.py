"""Real container engines with the test's own directories and sockets: the machine's engines, images and network are not
touched. Containers have no network, and see the host's programs read-only. An engine's programs are taken from build/engines,
where scripts/test unpacks them, or else from the machine."""

import fcntl
import hashlib
import io
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tarfile
import tempfile
import time

from machines import ROOT, wait_until
from processes import end_process

UNPACKED = ROOT / "build/engines"
PATH = os.pathsep.join([str(UNPACKED / "usr/bin"), str(UNPACKED / "usr/sbin"), os.environ["PATH"],
                        "/usr/sbin", "/sbin"])
HOST = [path for path in ("/usr", "/lib", "/lib64", "/bin") if os.path.exists(path)]


def find(program):
    return shutil.which(program, path=PATH)


def version_of(program):
    """Returns (major, minor), such as (28, 2); None if the program prints no version."""
    output = subprocess.run([find(program), "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"(\d+)\.(\d+)\.", output)
    return version and (int(version[1]), int(version[2]))


def too_old_for_cdi(program, *least):
    """Returns a reason such as "containerd 1.6: devices by CDI from 1.7 on"; None if the program is new enough or has no
    version."""
    version = version_of(program)
    if not version or version >= least:
        return None
    return f"{program} {version[0]}.{version[1]}: devices by CDI from {least[0]}.{least[1]} on"


class Engine:
    """One engine, as a context manager that removes all that it made. `needs`: the programs that must be installed."""

    needs = ()
    kind = None
    cgroup = None   # the parent of its containers' cgroups
    # Whether all engines of this kind use the same cgroup. The engine that made it removes it, so only one may run at a time.
    is_one_at_a_time = False

    def __init__(self, directory):
        self.directory = directory
        self.directory.mkdir()
        self.socket = directory / "engine.sock"
        self.environment = {**os.environ, "PATH": PATH}
        self.processes = []
        self.made = []
        if self.is_one_at_a_time:
            self.lock = open(pathlib.Path(tempfile.gettempdir(), f"allot-test-{self.kind}.lock"), "w")
            fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.cgroups_before = set(self.cgroups())

    def cgroups(self):
        return pathlib.Path("/sys/fs/cgroup").glob(f"*/{self.cgroup}")

    @classmethod
    def why_not(cls):
        if os.geteuid() != 0:
            return "needs root"
        missing = [program for program in cls.needs if not find(program)]
        return f"no {', no '.join(missing)}" if missing else None

    def setting(self):
        return f"{self.kind}:{self.socket}"

    def call(self, *command, **more):
        return subprocess.run([find(command[0]), *map(str, command[1:])], capture_output=True,
                              text=True, timeout=60, check=False, env=self.environment, **more)

    def check(self, *command, **more):
        done = self.call(*command, **more)
        if done.returncode:
            raise RuntimeError(f"{command[0]}: {(done.stderr + done.stdout).strip()[-400:]}")
        return done.stdout.strip()

    def serve(self, *command):
        log = open(self.directory / "log", "w")
        process = subprocess.Popen([find(command[0]), *map(str, command[1:])], stdout=log,
                                   stderr=log, stdin=subprocess.DEVNULL, env=self.environment)
        log.close()
        self.processes.append(process)

        def listens():
            if process.poll() is not None:
                raise RuntimeError(f"{command[0]} ended: {self.log()}")
            return self.socket.exists() and self.is_ready()

        wait_until(listens, seconds=30, what=command[0])
        return process

    def is_ready(self):
        return True

    def log(self):
        return (self.directory / "log").read_text()[-1000:]

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        for name in self.made:
            self.remove(name)
        for process in self.processes:
            end_process(process)
        self.unmount()
        for place in set(self.cgroups()) - self.cgroups_before:
            for part in sorted(filter(os.path.isdir, place.rglob("*")), reverse=True):
                self.remove_cgroup(part)
            self.remove_cgroup(place)
        if self.is_one_at_a_time:
            self.lock.close()

    @staticmethod
    def remove_cgroup(place):
        try:
            place.rmdir()
        except OSError:
            pass    # another engine uses it

    def unmount(self):
        """Unmounts what the engine has left mounted below its directory."""
        with open("/proc/self/mounts") as file:
            places = [line.split()[1] for line in file]
        for place in sorted(places, reverse=True):
            if place.startswith(f"{self.directory}/"):
                subprocess.run(["umount", "-l", place], check=False, capture_output=True)


class Podman(Engine):
    needs = ("podman", "runc", "conmon")
    kind = "podman"
    cgroup = "libpod_parent"
    is_one_at_a_time = True

    def start(self):
        self.configure()
        self.daemon = self.serve(*self.base, "system", "service", "--time", "0",
                                 f"unix://{self.socket}")

    def configure(self):
        config = self.directory / "containers.conf"
        config.write_text(f"""
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
conmon_path = ["{find("conmon")}"]
[engine.runtimes]
runc = ["{find("runc")}"]
[containers]
apparmor_profile = "unconfined"
seccomp_profile = "unconfined"
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
""")
        (self.directory / "registries.conf").write_text("unqualified-search-registries = []\n")
        self.environment.update(CONTAINERS_CONF=str(config),
                                CONTAINERS_REGISTRIES_CONF=str(self.directory / "registries.conf"),
                                TMPDIR=str(self.directory))
        self.base = ["podman", "--root", self.directory / "root", "--runroot",
                     self.directory / "run", "--tmpdir", self.directory / "tmp",
                     "--storage-driver", "vfs"]

    def run(self, name, command, environment=(), shared=(), options=()):
        rootfs = self.directory / f"rootfs-{name}"
        rootfs.mkdir()
        mounts = [f"--volume={path}:{path}:ro" for path in HOST]
        mounts += [f"--volume={path}:{path}" for path in shared]
        self.made.append(name)
        return self.check(*self.base, "run", "--detach", "--name", name, "--network", "none", *mounts,
                          *[f"--env={key}={value}" for key, value in environment], *options,
                          "--rootfs", rootfs, *command)

    def remove(self, name):
        self.call(*self.base, "rm", "--force", "--time", "0", name)


def image_layer():
    """Returns a tar archive of empty directories, on which the host's directories are mounted."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for name in ("usr", "lib", "lib64", "bin", "tmp", "etc"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
    return layer.getvalue()


class Docker(Engine):
    needs = ("dockerd", "docker", "containerd", "runc")
    kind = "docker"
    cgroup = "docker"
    is_one_at_a_time = True
    image = "allot.test/nothing:1"

    def settings(self):
        return {}

    def start(self):
        config = self.directory / "daemon.json"
        config.write_text(json.dumps(self.settings()))
        self.environment["DOCKER_HOST"] = f"unix://{self.socket}"
        self.environment["DOCKER_CONFIG"] = str(self.directory / "client")
        self.daemon = self.serve(
            "dockerd", "--config-file", config, "--host", f"unix://{self.socket}", "--data-root", self.directory / "root",
            "--exec-root", self.directory / "exec", "--pidfile", self.directory / "pid",
            "--bridge", "none", "--iptables=false", "--ip6tables=false", "--ip-forward=false",
            "--ip-masq=false", "--userland-proxy=false", "--storage-driver", "vfs")
        layer = self.directory / "layer.tar"
        layer.write_bytes(image_layer())
        self.check("docker", "import", layer, self.image)

    def is_ready(self):
        return self.call("docker", "version").returncode == 0

    def run(self, name, command, environment=(), shared=(), devices=()):
        mounts = [f"--volume={path}:{path}:ro" for path in HOST]
        mounts += [f"--volume={path}:{path}" for path in shared]
        mounts += [f"--device={device}" for device in devices]
        self.made.append(name)
        return self.check("docker", "run", "--detach", "--name", name, "--network", "none", *mounts,
                          "--security-opt", "seccomp=unconfined", "--security-opt",
                          "apparmor=unconfined",
                          *[f"--env={key}={value}" for key, value in environment],
                          self.image, *command)

    def exec(self, name, *command):
        """Returns the lines of its output, and its status."""
        done = self.call("docker", "exec", name, *command)
        return done.stdout.splitlines(), done.returncode

    def remove(self, name):
        self.call("docker", "rm", "--force", name)


# ---- containerd, through its CRI ----

def field(number, value):
    """Encodes one field of a protobuf message: a number, a text, or the bytes of a message."""
    def varint(n):
        out = bytearray()
        while n > 127:
            out.append(n & 127 | 128)
            n >>= 7
        return bytes(out) + bytes([n])

    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def fields_of(message):
    """Decodes a protobuf message to {number: value}. Of a repeated field only the last value is kept."""
    found, at = {}, 0

    def varint():
        nonlocal at
        n = shift = 0
        while True:
            byte = message[at]
            at += 1
            n |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return n

    while at < len(message):
        key = varint()
        value = varint()
        if key & 7 == 2:
            at += value
            value = message[at - value:at]
        found[key >> 3] = value
    return found


def pairs(number, values):
    return b"".join(field(number, field(1, key) + field(2, value)) for key, value in values.items())


class Containerd(Engine):
    """containerd, called through its CRI as the kubelet does (k8s.io/cri-api, runtime/v1), with the kubelet's labels. Pods use
    the host's network."""

    needs = ("containerd", "ctr", "runc")
    kind = "containerd"
    cgroup = f"allot-pods-{os.getpid()}"
    image = "allot.test/nothing:1"

    @classmethod
    def why_not(cls):
        try:
            import grpc  # noqa: F401, PLC0415
        except ImportError:
            return "no grpcio"
        return super().why_not()

    def settings(self):
        """More lines of its CRI's."""
        return ""

    def start(self):
        config = self.directory / "config.toml"
        config.write_text(f"""version = 2
root = "{self.directory}/root"
state = "{self.directory}/state"
[grpc]
address = "{self.socket}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{self.image}"
disable_apparmor = true
restrict_oom_score_adj = true
{self.settings()}
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{self.directory}/cni"
conf_dir = "{self.directory}/cni"
""")
        self.daemon = self.serve("containerd", "--config", config)
        self.import_image()

    def is_ready(self):
        return self.call("ctr", "--address", self.socket, "version").returncode == 0

    def import_image(self):
        """The layer has one static program, which sleeps: the process of each pod's sandbox."""
        layer = io.BytesIO(image_layer())
        pause = self.build_pause()
        with tarfile.open(fileobj=layer, mode="a") as tar:
            entry = tarfile.TarInfo("pause")
            entry.mode, entry.size = 0o755, len(pause)
            tar.addfile(entry, io.BytesIO(pause))
        data = layer.getvalue()
        machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
        config = {"architecture": machine, "os": "linux", "config": {"Cmd": ["/pause"]}, "rootfs": {
            "type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(data).hexdigest()}"]}}
        files = {"config.json": json.dumps(config).encode(), "layer.tar": data,
                 "manifest.json": json.dumps([{"Config": "config.json", "RepoTags": [self.image],
                                               "Layers": ["layer.tar"]}]).encode()}
        path = self.directory / "image.tar"
        with tarfile.open(path, "w") as tar:
            for name, text in files.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(text)
                tar.addfile(entry, io.BytesIO(text))
        # From 2.0 on, ctr imports by the transfer service, which unpacks only for configured snapshotters.
        local = ["--local"] if (version_of("ctr") or (2, 0)) >= (2, 0) else []
        self.check("ctr", "--address", self.socket, "--namespace", "k8s.io", "images", "import", *local,
                   "--snapshotter", "native", path)

    def build_pause(self):
        source, program = self.directory / "pause.c", self.directory / "pause"
        source.write_text("#include <unistd.h>\nint main(void)\n{\n\tfor (;;)\n\t\tpause();\n}\n")
        subprocess.run([os.environ.get("CC", "cc"), "-static", "-o", program, source], check=True)
        return program.read_bytes()

    def cri(self, method, request):
        import grpc  # noqa: PLC0415
        with grpc.insecure_channel(f"unix://{self.socket}",
                                   options=[("grpc.default_authority", "localhost")]) as channel:
            return channel.unary_unary(f"/runtime.v1.RuntimeService/{method}")(request, timeout=30)

    @staticmethod
    def id_of(reply):
        """Returns the first field of a reply, which is a text shorter than 128 bytes."""
        return reply[2:2 + reply[1]].decode()

    def run(self, name, command, environment=(), shared=(), pod="pod-0", namespace="team", devices=()):
        on_host = field(2, field(1, field(1, 2)))  # security_context.namespace_options.network = NODE
        labels = {"io.kubernetes.pod.name": pod, "io.kubernetes.pod.namespace": namespace,
                  "io.kubernetes.container.name": name}
        metadata = field(1, pod) + field(2, f"uid-{pod}") + field(3, namespace)
        sandbox_config = field(1, metadata) + pairs(6, labels) + \
            field(8, field(1, f"/{self.cgroup}") + on_host)
        sandbox = self.id_of(self.cri("RunPodSandbox", field(1, sandbox_config)))
        self.made.append(sandbox)
        mounts = [field(1, str(path)) + field(2, str(path)) + field(3, int(path in HOST))
                  for path in (*HOST, *shared)]
        config = field(1, field(1, name)) + field(2, field(1, self.image))
        config += b"".join(field(3, str(argument)) for argument in command)
        config += b"".join(field(6, field(1, key) + field(2, str(value)))
                           for key, value in environment)
        config += b"".join(field(7, mount) for mount in mounts)
        config += pairs(9, labels) + field(15, field(2, b""))
        config += b"".join(field(17, field(1, device)) for device in devices)
        container = self.id_of(self.cri("CreateContainer", field(1, sandbox) + field(2, config) +
                                        field(3, sandbox_config)))
        self.cri("StartContainer", field(1, container))
        return container

    def exec(self, container, *command):
        """Returns the lines of its output, and its status."""
        arguments = b"".join(field(2, str(argument)) for argument in command)
        reply = self.cri("ExecSync", field(1, container) + arguments + field(3, 60))
        found = {1: b"", 3: 0, **fields_of(reply)}
        return found[1].decode().splitlines(), found[3]

    def remove(self, name):
        """Repeats each call until it succeeds, as the kubelet does: a call fails if a container ends meanwhile."""
        for method in ("StopPodSandbox", "RemovePodSandbox"):
            wait_until(lambda: self.is_done(method, name), what=f"{method} of {name}")  # noqa: B023

    def is_done(self, method, name):
        import grpc  # noqa: PLC0415
        try:
            self.cri(method, field(1, name))
        except grpc.RpcError:
            time.sleep(0.2)
            return False
        return True

    def unmount(self):
        # The shims end by themselves soon afterwards.
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and self.has_shims():
            time.sleep(0.1)
        super().unmount()

    def has_shims(self):
        return str(self.socket) in subprocess.run(["ps", "-eo", "args"], capture_output=True,
                                                  text=True, check=False).stdout
