"""A container that runc starts with nothing of the GPU but the edits that `allot cdi create` wrote. Its device nodes suffice,
it sees its quota as the GPU's memory and gets its share of GPU time but no more. A process that `runc exec` starts in it
belongs to the same tenant. When the container has ended, its tenant holds nothing any more."""

import json
import os
import shutil
import subprocess
import tempfile

from harness.job import Failed
from harness.load import Kernel, Loads, Series

KERNEL = Kernel(1000, 8192)
MIB = 1 << 20
QUOTA_MIB = 4096
HELD_MIB = 1024
BEYOND_MIB = 64         # allot-load asks for this much more than the total
CORES = 30
POINTS = 1.0            # tolerance of a share
SIM_SHARE = 0.5         # least part of the share on a simulated GPU, which is slower while the processors are busy
WARM_S, RUN_S = 5.0, 10.0       # the second process ends during the warm-up
START_S = 60
REFUSAL = {"asked_bytes": (QUOTA_MIB + BEYOND_MIB) * MIB, "error": "CUDA_ERROR_OUT_OF_MEMORY"}
ROOT = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ld.so.cache")
NAME = "box"


def find_runc(machine):
    """(path, environment). In a packed build, runc and its library are in the folder of `allot`."""
    packed = os.path.join(os.path.dirname(machine.allot), "runc")
    if os.access(packed, os.X_OK):
        return packed, dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(packed))
    found = shutil.which("runc", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    return (found, dict(os.environ)) if found else (None, None)


class Container:
    def __init__(self, machine, folder, spec):
        self.machine = machine
        self.runc, self.environment = find_runc(machine)
        self.bundle = os.path.join(folder, "bundle")
        self.state = os.path.join(folder, "runc")
        self.id = f"allot-check-{os.getpid()}"
        os.makedirs(os.path.join(self.bundle, "rootfs"))
        self.tell("spec", cwd=self.bundle)
        self.edits = spec["devices"][0]["containerEdits"]

    def write(self, command):
        """Writes runc's default configuration, with the CDI edits applied as a container engine does it."""
        path = os.path.join(self.bundle, "config.json")
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        config["process"].update(terminal=False, args=command, cwd="/",
                                 env=["PATH=/usr/bin:/bin", *self.edits.get("env", [])])
        config["root"]["readonly"] = False
        build = os.path.dirname(self.machine.allot)
        config["mounts"] = [m for m in config["mounts"] if m["destination"] != "/sys/fs/cgroup"]
        config["mounts"] += [self.mount(os.path.realpath(one), one, "ro") for one in (*ROOT, build)
                             if os.path.exists(one)]
        config["mounts"] += [self.mount(m["hostPath"], m["containerPath"], *m["options"])
                             for m in self.edits.get("mounts", [])]
        linux = config["linux"]
        linux.pop("seccomp", None)
        linux["cgroupsPath"] = f"/{self.id}"
        linux["devices"], rules = [], [{"allow": False, "access": "rwm"}]
        for node in self.edits.get("deviceNodes", []):
            number = os.stat(node.get("hostPath", node["path"])).st_rdev
            where = {"type": "c", "major": os.major(number), "minor": os.minor(number)}
            linux["devices"].append({"path": node["path"], "fileMode": 0o666, "uid": 0, "gid": 0, **where})
            rules.append({"allow": True, "access": "rw", **where})
        linux["resources"] = {"devices": rules}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)

    @staticmethod
    def mount(source, destination, *options):
        return {"source": source, "destination": destination, "type": "bind", "options": ["rbind", *options]}

    def start(self, name, command):
        self.write(command)
        return self.machine.native(name, ["env", f"LD_LIBRARY_PATH={self.environment.get('LD_LIBRARY_PATH', '')}",
                                          self.runc, "--root", self.state, "run", "--bundle", self.bundle, self.id])

    def tell(self, *words, **more):
        return subprocess.run([self.runc, "--root", self.state, *words], env=self.environment, text=True,
                              capture_output=True, timeout=START_S, check=False, **more)


def refusal(lines):
    """The request that allot-load was refused, from its last line; None if nothing was refused."""
    said = [json.loads(line) for line in lines if line.startswith("{")]
    return said[-1].get("refused") if said else None


def check_memory(tally, container, load, what):
    """Checks the quota with a load that is the container's first process."""
    job = container.start("container, memory", [*load, "--seconds", "0.2", "--mib", str(HELD_MIB), "--alloc-over"])
    status = job.wait(START_S)
    if status != 0:
        tally.bad(f"{what}: a container with the devices of its CDI specification", f"status {status}{job.tail()}")
        return False
    tally.good(f"{what}: a container with the devices of its CDI specification",
               ", ".join(node["path"] for node in container.edits.get("deviceNodes", [])) or "none: simulated")
    refused = refusal(job.text())
    tally.verdict(refused == REFUSAL, f"{what}: its quota is the GPU, and what is more is out of memory",
                  json.dumps(refused))
    return True


def share_of(loads, container, load):
    """(share: percent of the load's native rate alone on the GPU, result of a second load that runc exec started)."""
    job = container.start("container, share", [*load, "--seconds", str(WARM_S + RUN_S + 1), "--report-every", "0.1"])
    if job.wait_line(0, START_S) is None:
        raise Failed(f"status {job.wait(10)}{job.tail()}")
    inside = container.tell("exec", container.id, *load, "--seconds", "0.2", "--mib", str(HELD_MIB), "--alloc-over")
    status = job.wait(START_S)
    if status != 0:
        raise Failed(f"status {status}{job.tail()}")
    series = Series([said for _, said in job.json() if "t_s" in said and "kernels" in said])
    end = min(series.at[-1], WARM_S + RUN_S)
    return 100 * series.rate(WARM_S, end) / loads.native_rate(KERNEL), inside


def check_container(machine, tally, container, loads, tenant, what):
    """`tenant`: the name of the container's tenant. `what`: begins the name of each verdict."""
    load = loads.command(KERNEL)
    if check_memory(tally, container, load, what):
        pct, inside = share_of(loads, container, load)
        least = SIM_SHARE * CORES if machine.is_simulated else CORES - POINTS
        tally.verdict(least <= pct <= CORES + POINTS, f"{what}: its share of the work", f"{pct:.2f} % of {CORES}")
        tally.verdict(inside.returncode == 0 and refusal(inside.stdout.splitlines()) == REFUSAL,
                      f"{what}: what is run in it later has the same quota",
                      inside.stderr.strip() or json.dumps(refusal(inside.stdout.splitlines())))
    found, = (t for t in machine.ps()["tenants"] if t["name"] == tenant)
    tally.verdict(found["devices"][0]["memory_used_bytes"] == 0, f"{what}: nothing is left of it",
                  f"{found['devices'][0]['memory_used_bytes']} bytes")


def check(machine, tally, options):
    runc, _ = find_runc(machine)
    why = "needs root" if os.geteuid() else None if runc else "no runc here"
    if why:
        tally.skip("a container by CDI", why)
        return
    loads = Loads(machine)
    loads.native_rate(KERNEL)
    with tempfile.TemporaryDirectory(prefix="allot-box-", dir="/tmp") as folder:
        machine.tell("cdi", "create", NAME, "--memory", f"{QUOTA_MIB}MiB", "--cores", str(CORES), "--cores-limit",
                     str(CORES), "--output", folder)
        with open(os.path.join(folder, f"allot-{NAME}.json"), encoding="utf-8") as file:
            container = Container(machine, folder, json.load(file))
        try:
            check_container(machine, tally, container, loads, NAME, "container")
        finally:
            container.tell("delete", "--force", container.id)
            machine.tell("cdi", "remove", NAME)
    tally.verdict(NAME not in [t["name"] for t in machine.ps()["tenants"]], "container: its device is removed")
