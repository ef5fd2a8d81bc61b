"""allot doctor: on fake machines that consist of files, each with one fault, and on the machine that runs the tests."""

import json
import os
import pwd
import shutil
import socket
import subprocess
import time

import pytest

from machines import BUILD

VERSION = "580.65.06"
GPU = "0000:17:00.0"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Returns make(path, soname), which compiles an empty library with the driver's soname, for the loader's cache."""
    source = tmp_path_factory.mktemp("lib") / "lib.c"
    source.write_text("int nothing;\n")

    def make(path, soname):
        subprocess.run(["cc", "-shared", "-o", path, f"-Wl,-soname,{soname}", source], check=True)

    return make


class Host:
    """The files of a machine without faults."""

    def __init__(self, root, library):
        self.root = root
        for name in ("etc/cdi", "usr/lib", "proc/sys/kernel", f"proc/driver/nvidia/gpus/{GPU}", "dev",
                     "sys/fs/cgroup/system.slice", f"sys/bus/pci/devices/{GPU}", "proc/1"):
            (root / name).mkdir(parents=True)
        self.write("proc/sys/kernel/osrelease", "6.8.0-45-generic\n")
        self.write("proc/modules", "nvidia_uvm 4931584 0 - Live 0x0\nnvidia 112324608 2 nvidia_uvm, Live 0x0\n")
        self.write("proc/driver/nvidia/version",
                   f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {VERSION}  Release Build\n"
                   "GCC version:  gcc version 13.2.0\n")
        self.write(f"proc/driver/nvidia/gpus/{GPU}/information", "Model: 	 NVIDIA H200\nDevice Minor: 	 0\n")
        self.write("proc/1/comm", "systemd\n")
        self.write(f"sys/bus/pci/devices/{GPU}/vendor", "0x10de\n")
        self.write(f"sys/bus/pci/devices/{GPU}/class", "0x030200\n")
        self.write("sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
        self.write("sys/fs/cgroup/system.slice/cgroup.freeze", "0\n")
        for name in ("nvidiactl", "nvidia-uvm", "nvidia0"):
            self.write(f"dev/{name}", "")
        for name in ("libcuda", "libnvidia-ml"):
            library(root / f"usr/lib/{name}.so.{VERSION}", f"{name}.so.1")
        self.write("etc/ld.so.conf", "/usr/lib\n")
        self.cache()

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def cache(self):
        """Makes the loader's cache with the real ldconfig, which also makes the links."""
        subprocess.run(["/sbin/ldconfig", "-r", self.root], check=True, capture_output=True)

    def findings(self, **user):
        done = subprocess.run([BUILD / "allot", "doctor", "--json", "--root", self.root], capture_output=True,
                              text=True, check=False, timeout=60, **user)
        report = json.loads(done.stdout)
        assert done.stderr == "" and report["version"] == 1
        assert done.returncode == (1 if report["worst"] == "problem" else 0)
        return report


@pytest.fixture
def host(tmp_path, library):
    if os.geteuid() != 0:
        pytest.skip("ldconfig -r needs root")
    return Host(tmp_path / "root", library)


def test_no_fault(host):
    report = host.findings()
    assert report["worst"] == "ok", report
    texts = {finding["check"]: finding["what"] for finding in report["findings"]}
    assert texts["driver"] == f"NVIDIA's kernel module {VERSION}"
    assert texts["libcuda"] == f"/usr/lib/libcuda.so.{VERSION}"
    assert texts["device-nodes"] == "of 1 GPU"
    assert texts["cgroups"] == texts["freezer"].replace("cgroup ", "") == "version 2"
    # Running programs do not belong to the machine of these files.
    assert not {"daemon", "pid-namespace", "gpus", "tenant"} & set(texts)


def remove(path):
    return lambda host: (host.root / path).unlink()


def put(path, text):
    return lambda host: host.write(path, text)


def no_module(host):
    shutil.rmtree(host.root / "proc/driver")


def no_gpu(host):
    no_module(host)
    shutil.rmtree(host.root / "sys/bus")


def old_library(host):
    (host.root / f"usr/lib/libcuda.so.{VERSION}").rename(host.root / "usr/lib/libcuda.so.550.54.15")
    (host.root / "usr/lib/libcuda.so.1").unlink()
    host.cache()


def no_libraries(host):
    for path in (host.root / "usr/lib").iterdir():
        path.unlink()
    host.cache()


def rival(host):
    host.write("usr/local/vgpu/libvgpu.so", "")
    host.write("etc/ld.so.preload", "/usr/local/vgpu/libvgpu.so\n")


def plugins(host):
    host.write("var/lib/kubelet/device-plugins/nvidia-gpu.sock", "")
    host.write("var/lib/kubelet/device-plugins/kubelet.sock", "")


def certificate(days, names="DNS:allot-scheduler.allot-system.svc"):
    """Makes the scheduler's certificate with openssl; it ends in so many days."""
    def make(host):
        folder = host.root / "etc/allot"
        host.write("etc/allot/allot-scheduler.conf",
                   "tls_certificate = /etc/allot/tls.crt # ours\ntls_key = /etc/allot/tls.key\n")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-days", "2", "-subj", "/CN=a", "-addext", f"subjectAltName={names}", "-keyout",
                        folder / "tls.key", "-out", folder / "fresh.crt"], check=True, capture_output=True)
        subprocess.run(["openssl", "x509", "-in", folder / "fresh.crt", "-signkey", folder / "tls.key", "-days",
                        str(days), "-out", folder / "tls.crt"], check=True, capture_output=True)
    return make


def settings(text, *more):
    def spoil(host):
        host.write("etc/allot/allotd.conf", text)
        for one in more:
            one(host)
    return spoil


def mirror(driver):
    """Makes a mirror as `allot mirror` does, of that driver, with this build's library."""
    def make(host):
        host.write("srv/mirror/versions", json.dumps({"version": 1, "driver": driver}))
        (host.root / "srv/mirror/lib64").mkdir()
        shutil.copy(BUILD / "liballot.so", host.root / "srv/mirror/lib64")
    return settings("container_driver = /srv/mirror\n", make)


def mps(pipe):
    """An MPS process and its pipe directory."""
    def make(host):
        host.write("proc/77/comm", "nvidia-cuda-mps\n")
        host.write("proc/77/environ", f"HOME=/\0CUDA_MPS_PIPE_DIRECTORY={pipe}\0CUDA_VISIBLE_DEVICES=0\0")
    return make


KUBELET = put("var/lib/kubelet/device-plugins/kubelet.sock", "")
PLUGINS = "var/lib/kubelet/device-plugins"
SPEC = {"cdiVersion": "0.5.0", "kind": "allot.dev/gpu", "devices": [
    {"name": "a", "containerEdits": {"mounts": [{"hostPath": "/run/allot/gone", "containerPath": "/x"}]}}]}


@pytest.mark.parametrize("spoil, check, level, what", [
    (certificate(-1), "certificate", "problem", "/etc/allot/tls.crt: expired on "),
    (certificate(5), "certificate", "warning", "expires on "),
    (certificate(90, "DNS:gpu.example.org"), "certificate", "warning", "gpu.example.org, but kube-apiserver calls the webhook by"),
    # A name that exceeds the 255 bytes of a DNS name is skipped.
    (certificate(90, f"URI:spiffe://{'x' * 300},DNS:gpu.example.org"), "certificate", "warning",
     "is for gpu.example.org, but kube-apiserver calls the webhook by"),
    (settings("metrics_tls_certificate = /etc/none.crt\n"), "certificate", "problem", "metrics server, /etc/none.crt: does not exist"),
    (settings("metrics_tls_certificate = /etc/cdi\n"), "certificate", "problem", "may not be read"),
    (settings("web_tls_certificate = /etc/ld.so.conf\nweb_tls_key = /etc/ld.so.conf\n"), "certificate", "problem",
     "is not a PEM file with a certificate"),
    (put("etc/cdi/allot-a.json", "{"), "cdi", "warning", "/etc/cdi/allot-a.json: line 1: "),
    (put("etc/cdi/allot-a.json", json.dumps(SPEC)), "cdi", "warning", "mounts /run/allot/gone, which does not exist"),
    (put("etc/cdi/nvidia.json", "{}"), "cdi", "warning", "has no cdiVersion"),
    (put("usr/bin/podman", ""), "injection", "warning", "containers would get no driver"),
    (mirror("550.54.15"), "injection", "problem", "/srv/mirror has driver 550.54.15 but the kernel module is " + VERSION),
    (settings("container_driver = /srv/none\n"), "injection", "problem", "has no lib64/liballot.so"),
    (settings("", put("usr/bin/containerd", ""), put("etc/containerd/config.toml", "  enable_cdi = false\n")), "runtime",
     "warning", "containerd: CDI is off in its settings"),
    (settings("", put("run/docker.sock", ""), put("etc/docker/daemon.json", '{"features": {"cdi": false}}')), "runtime",
     "warning", "docker: CDI is off"),
    (settings("kube_plugin = on\n", KUBELET), "plugin", "problem", "allotd has no socket below"),
    (settings("kube_resource = a.b/c\n", KUBELET, put(f"{PLUGINS}/allot-c.sock", ""),
              put(f"{PLUGINS}/kubelet_internal_checkpoint",
                  '{"Data": {"RegisteredDevices": {"nvidia.com/gpu": ["x"]}}}')), "plugin", "problem",
     "has not registered the resource a.b/c"),
    (put("proc/77/comm", "nvidia-device-p\n"), "device-plugin", "warning", "device plugin runs"),
    (put("proc/77/comm", "dcgm-exporter\n"), "monitor", "note", "DCGM's exporter"),
    (put("usr/local/vgpu/libvgpu.so", ""), "hami-files", "note", "/usr/local/vgpu exists"),
    (put("proc/sys/kernel/osrelease", "4.19.0-27-amd64\n"), "kernel", "problem", "Linux 4.19.0-27-amd64"),
    (remove("proc/sys/kernel/osrelease"), "kernel", "problem", "cannot be read from /proc"),
    (no_module, "driver", "problem", "not loaded, and there is 1 GPU"),
    (no_gpu, "driver", "problem", "no NVIDIA GPU"),
    (put("proc/modules", "nvidia 1 0 - Live 0x0\n"), "nvidia-uvm", "problem", "is not loaded"),
    (remove("dev/nvidia-uvm"), "device-nodes", "problem", "/dev/nvidia-uvm is missing"),
    (remove("dev/nvidia0"), "device-nodes", "problem", f"/dev/nvidia0 of the GPU at {GPU} is missing"),
    (old_library, "libcuda", "problem",
     f"/usr/lib/libcuda.so.550.54.15 has version 550.54.15, but the kernel module has {VERSION}"),
    (remove(f"usr/lib/libcuda.so.{VERSION}"), "libcuda", "problem", f"/usr/lib/libcuda.so.{VERSION}, which does not exist"),
    (no_libraries, "nvml", "problem", "the dynamic loader does not find libnvidia-ml.so.1"),
    (rival, "preload", "problem", "which is HAMi's"),
    (put("etc/ld.so.preload", "/gone/liballot.so # ours\n"), "preload", "warning", "/gone/liballot.so, which does not exist"),
    (mps("/tmp/nvidia-mps"), "mps", "warning", "an MPS daemon runs (pid 77) that allot did not start"),
    (mps("/srv/mps/0-1/pipe"), "mps", "warning", "an MPS daemon runs (pid 77) that allot did not start"),
    (put("proc/77/comm", "nvidia-cuda-mps\n"), "mps", "note", "(pid 77); this user cannot see whether allot started it"),
    (plugins, "device-plugin", "warning", "nvidia-gpu.sock: another device plugin"),
    (put("var/lib/kubelet/config.yaml", ""), "kubelet", "warning", "kubelet.sock is not there"),
    (put("etc/cdi/nvidia.yaml", ""), "cdi", "note", "/etc/cdi/nvidia.yaml"),
    (remove("sys/fs/cgroup/system.slice/cgroup.freeze"), "freezer", "warning", "no cgroup freezer"),
    (remove("sys/fs/cgroup/cgroup.controllers"), "cgroups", "warning", "cannot be distinguished"),
])
def test_each_fault_is_found(host, spoil, check, level, what):
    spoil(host)
    report = host.findings()
    found = [finding for finding in report["findings"] if finding["check"] == check and what in finding["what"]]
    assert found and {finding["level"] for finding in found} == {level}, report
    # Each warning and problem says what to do.
    assert level == "note" or all(finding["remedy"] for finding in found), found


def test_a_file_that_this_user_may_not_look_for_is_not_missed(host):
    """allotd's folder of claims is closed to users, who may run doctor all the same."""
    host.write("run/allot/gone", "")
    host.write("etc/cdi/allot-a.json", json.dumps(SPEC))
    host.write("etc/ld.so.preload", "/run/allot/gone\n")
    (host.root / "run/allot").chmod(0o700)
    for folder in [host.root, *host.root.parents][:-1]:
        if folder.stat().st_mode & 0o777 == 0o700:
            folder.chmod(0o711)
    nobody = pwd.getpwnam("nobody")
    report = host.findings(user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[])
    assert "/run/allot/gone, which does not exist" not in json.dumps(report)
    assert ("cdi", "note") in [(finding["check"], finding["level"]) for finding in report["findings"]]


def test_a_certificate_of_many_names(host):
    """The name of the Service is the last."""
    names = [f"n{i}.{'x' * 40}.example.org" for i in range(20)] + ["allot-scheduler.allot-system.svc"]
    certificate(90, ",".join(f"DNS:{name}" for name in names))(host)
    (found,) = [finding for finding in host.findings()["findings"] if finding["check"] == "certificate"]
    assert found["level"] == "ok" and names[0] in found["what"] and ", until " in found["what"]


def test_mps_that_allotd_started(host):
    """It is not reported, but another MPS daemon beside it is."""
    mps("/run/allot/gpu/mps/0-1/pipe")(host)
    host.write("run/allot/gpu/mps/0-1.json", "{}")
    assert "mps" not in {finding["check"] for finding in host.findings()["findings"]}
    host.write("proc/78/comm", "nvidia-cuda-mps\n")
    host.write("proc/78/environ", "HOME=/\0")
    (found,) = [finding for finding in host.findings()["findings"] if finding["check"] == "mps"]
    assert found["level"] == "warning" and "(pid 78)" in found["what"]


def test_device_files_of_mig_instances(host):
    """Each GPU instance and each compute instance must have a device file. A machine without MIG has no such finding."""
    assert "mig-nodes" not in {finding["check"] for finding in host.findings()["findings"]}
    caps = "proc/driver/nvidia/capabilities"
    host.write(f"{caps}/mig/config", "DeviceFileMinor: 1\nDeviceFileMode: 256\nDeviceFileModify: 1\n")
    for minor, place in ((66, "gi7"), (67, "gi7/ci0"), (75, "gi8"), (76, "gi8/ci0")):
        host.write(f"{caps}/gpu0/mig/{place}/access", f"DeviceFileMinor: {minor}\nDeviceFileMode: 292\n")
        host.write(f"dev/nvidia-caps/nvidia-cap{minor}", "")

    def mig_nodes():
        return [(finding["level"], finding["what"], finding["remedy"])
                for finding in host.findings()["findings"] if finding["check"] == "mig-nodes"]

    assert mig_nodes() == [("ok", "device nodes of 2 MIG instances exist", None)]
    # A second compute instance of one GPU instance.
    host.write(f"{caps}/gpu0/mig/gi7/ci1/access", "DeviceFileMinor: 68\nDeviceFileMode: 292\n")
    host.write("dev/nvidia-caps/nvidia-cap68", "")
    assert mig_nodes() == [("ok", "device nodes of 3 MIG instances exist", None)]
    (host.root / "dev/nvidia-caps/nvidia-cap76").unlink()
    path = f"/{caps}/gpu0/mig/gi8/ci0/access"
    assert mig_nodes() == [("warning", "/dev/nvidia-caps/nvidia-cap76 is missing: containers cannot use the MIG "
                            f"instance of {path}", f"nvidia-modprobe -f {path}")]


def test_this_machine(machine):
    """With a simulated GPU, whose daemon runs."""
    tenant = machine.start("--name", "a", "--", "sleep", "60")
    machine.wait_for_tenant("a")
    done = machine.allot("doctor", "--json", *machine.sim)
    report = json.loads(done.stdout)
    found = {finding["check"]: finding for finding in report["findings"]}
    assert found["daemon"]["level"] == "ok" and "1 simulated GPU" in found["daemon"]["what"]
    assert found["library"]["what"] == str(BUILD / "liballot.so")
    assert found["driver"]["level"] == found["kernel"]["level"] == "ok"
    text = machine.allot("doctor", *machine.sim)
    assert text.returncode == done.returncode
    assert f"daemon             {found['daemon']['what'][:20]}" in text.stdout
    assert text.stdout.splitlines()[-1].startswith(
        f"{sum(finding['level'] == 'problem' for finding in report['findings'])} problem")
    # That daemon gives its containers the simulated driver, also if doctor is called without --sim.
    run_dir = found["daemon"]["what"].split(", ")[2]
    without_sim = by_check(machine.allot("doctor", "--json", "--run-dir", run_dir))
    assert "injection" not in without_sim
    assert without_sim["driver"]["what"] == "not checked: the daemon's GPUs are simulated"
    tenant.terminate()


def by_check(done):
    return {finding["check"]: finding for finding in json.loads(done.stdout)["findings"]}


def test_in_a_tenant(machine, tmp_path):
    """doctor reports the tenant and its quota, or that ALLOT_SOCKET leads nowhere."""
    doctor = [BUILD / "allot", "doctor", "--json", *machine.sim]
    terms = ["--name", "web", "--memory", "4GiB", "--cores", "30", "--cores-limit", "60"]
    found = by_check(machine.run(*terms, "--", *doctor))
    assert found["tenant"]["level"] == "ok" and found["tenant"]["what"].startswith("web; ")
    assert found["tenant"]["what"].endswith("allot.sock answers")
    assert found["quota"]["what"] == \
        "GPU 0: 0 of 4096 MiB used; 30 % of its time guaranteed, at most 60 %"
    assert found["preloaded"]["level"] == "ok" and "LD_PRELOAD of allot run" in found["preloaded"]["what"]
    # A program that bypasses the library sees that itself. A paused tenant is reported.
    found = by_check(machine.run(*terms, "--", "env", "-u", "LD_PRELOAD", *doctor))
    assert found["preloaded"]["level"] == "problem" and found["tenant"]["level"] == "ok"
    pause = f"{BUILD}/allot pause web {' '.join(machine.sim)} && exec {' '.join(map(str, doctor))}"
    found = by_check(machine.run(*terms, "--", "sh", "-c", pause))
    assert found["tenant"]["level"] == "warning" and "is paused" in found["tenant"]["what"]
    # A container has only the tenant's socket, and nothing else of the daemon. Its GPU is known to be simulated without --sim.
    found = by_check(machine.run(*terms, "--", BUILD / "allot", "doctor", "--json", "--run-dir", tmp_path))
    assert found["tenant"]["level"] == "ok" and "daemon" not in found
    assert found["driver"]["level"] == "ok" and "this tenant has a simulated GPU" in found["driver"]["what"]
    gone = tmp_path / "gone.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(gone))
    for path, what in ((gone, "Connection refused"), (tmp_path / "none", "No such file"), ("x" * 200, "too long")):
        done = machine.allot("doctor", "--json", *machine.sim, environment={"ALLOT_SOCKET": str(path)})
        (found,) = [finding for finding in json.loads(done.stdout)["findings"] if finding["check"] == "tenant"]
        assert found["level"] == "problem" and what in found["what"], found


def test_a_changed_clock(machine):
    """The daemon's start time by its socket's time stamp differs from that by its run time."""
    tenant = machine.start("--name", "a", "--", "sleep", "60")
    machine.wait_for_tenant("a")
    for step, message in ((-3600, "was set forward by 36"), (+3600, "was set back by 3")):
        stamp = time.time() + step
        os.utime(machine.run_dir / "allotd.sock", (stamp, stamp))
        clock = by_check(machine.allot("doctor", "--json", *machine.sim))["clock"]
        assert clock["level"] == "warning" and message in clock["what"], clock
    tenant.terminate()


@pytest.mark.parametrize("options, message", [
    (["--root", "/no/such"], "--root /no/such: No such file or directory"),
    (["--root", "/etc/passwd"], "--root /etc/passwd: not a directory"),
    (["now"], "'now': unexpected argument"),
])
def test_usage(machine, options, message):
    done = machine.allot("doctor", *options)
    assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1
