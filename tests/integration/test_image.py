"""The container image: two builds of it are identical, a container engine accepts it, and the daemon in it serves a GPU."""

import importlib.machinery
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import tarfile

import pytest

from machines import BUILD, ROOT, wait_until
from engines import Containerd, Podman, version_of
from servers import start

BUILDER = ROOT / "deploy/image/build"


def build_image(output, *options):
    return subprocess.run([BUILDER, "--build", (BUILD / "meson").resolve(), "--output", output, *options],
                          capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    if not shutil.which("apt-get"):
        pytest.skip("no apt-get here: an image is made of the distribution's packages")
    path = tmp_path_factory.mktemp("image") / "allot.tar"
    done = build_image(path, "--name", "allot.test/allot:1")
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture(scope="module")
def podman(image, tmp_path_factory):
    why_not = Podman.why_not()
    if why_not:
        pytest.skip(why_not)
    with Podman(tmp_path_factory.mktemp("p") / "podman") as engine:
        engine.check(*engine.base, "load", "--input", image)
        yield engine


def run(podman, *command, options=()):
    return podman.check(*podman.base, "run", "--rm", "--network", "none", *options, "allot.test/allot:1", *command)


def test_builds_are_small_and_identical(image, tmp_path):
    again = tmp_path / "again.tar"
    done = build_image(again, "--name", "allot.test/allot:1")
    assert done.returncode == 0, done.stderr
    assert again.read_bytes() == image.read_bytes()
    assert image.stat().st_size < 64 << 20
    with tarfile.open(image) as archive:
        (manifest,) = json.load(archive.extractfile("manifest.json"))
        with tarfile.open(fileobj=archive.extractfile(manifest["Layers"][0])) as layer:
            members = {member.name: member for member in layer}
    # No user or group of the build machine, and no setuid or setgid programs.
    assert {(member.uid, member.gid, member.uname, member.gname) for member in members.values()} == {(0, 0, "", "")}
    assert not [name for name, member in members.items() if member.isreg() and member.mode & 0o6000]
    assert "var/lib/dpkg/status.d/libc6" in members and "usr/local/bin/allotd" in members
    # `allot top` needs descriptions of terminals.
    assert "usr/lib/terminfo/x/xterm-256color" in members


@pytest.fixture
def builder():
    loader = importlib.machinery.SourceFileLoader("image_build", str(BUILDER))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("image_build", loader))
    loader.exec_module(module)
    return module


def test_links_of_base_files_do_not_replace_directories(builder):
    """Packages of Debian 13: base-files has the link /bin, others have only files below /usr/bin."""
    package = io.BytesIO()
    with tarfile.open(fileobj=package, mode="w") as tar:
        for name, kind, target in (("./", tarfile.DIRTYPE, ""), ("./bin", tarfile.SYMTYPE, "usr/bin"),
                                   ("./usr", tarfile.DIRTYPE, ""), ("./usr/bin", tarfile.DIRTYPE, ""),
                                   ("./usr/bin/sh", tarfile.SYMTYPE, "dash"), ("./bin/old", tarfile.REGTYPE, "")):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            tar.addfile(info)
    package.seek(0)
    layer = {}
    with tarfile.open(fileobj=package) as tar:
        builder.add_tar(layer, tar)
    assert {name: info.type for name, (info, _) in layer.items()} == {
        "usr": tarfile.DIRTYPE, "usr/bin": tarfile.DIRTYPE, "usr/bin/sh": tarfile.SYMTYPE, "usr/bin/old": tarfile.REGTYPE}


def test_diversions_are_not_taken_for_packages(builder, monkeypatch, tmp_path):
    """On Debian 13 `dpkg -S` succeeds for a diverted path and names the diversion before, or instead of, the owner."""
    dpkg = shutil.which("dpkg")
    if not dpkg:
        pytest.skip("no dpkg here")
    loaded_by = "/lib64/ld-linux-x86-64.so.2" if os.path.exists("/lib64/ld-linux-x86-64.so.2") else "/lib/ld-linux-aarch64.so.1"
    fake = tmp_path / "dpkg"
    fake.write_text('#!/bin/sh\necho "diversion by libc6 from: $2"\necho "diversion by libc6 to: $2.usr-is-merged"\n'
                    f'{dpkg} "$@"\nexit 0\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert builder.package_of(loaded_by) == "libc6"


def test_an_engine_runs_the_programs(podman):
    for program in ("allot", "allotd", "allot-scheduler"):
        assert re.match(rf"{program} \d+\.\d+\.\d+", run(podman, program, "--version"))
    assert "liballot.so" in run(podman, "sh", "-c", "ls /usr/local/lib/*/allot/liballot.so /usr/local/lib/allot/liballot.so; :")


def test_containerd_imports_it_as_documented(image, tmp_path_factory):
    """By the line of deploy/kubernetes/allotd.yaml, which is the README's with a namespace."""
    line = re.search(r"ctr -n k8s\.io images import", (ROOT / "deploy/kubernetes/allotd.yaml").read_text())[0]
    assert "`ctr images import`" in (ROOT / "README.md").read_text()
    why_not = Containerd.why_not()
    if why_not:
        pytest.skip(why_not)
    with Containerd(tmp_path_factory.mktemp("c") / "containerd") as engine:
        # The address of the test's daemon, and its snapshotter: users do not need these.
        engine.environment.update(CONTAINERD_ADDRESS=str(engine.socket), CONTAINERD_SNAPSHOTTER="native")
        # From 2.0 on, the transfer service unpacks only for configured snapshotters.
        local = ["--local"] if (version_of("ctr") or (2, 0)) >= (2, 0) else []
        output = engine.check(*line.split(), *local, image)
        assert "allot.test/allot:1" in output
        output = engine.check("ctr", "-n", "k8s.io", "run", "--rm", "--cgroup", f"/{engine.cgroup}/version", "--snapshotter",
                              "native", "allot.test/allot:1", "allot-version", "allot", "--version")
        assert re.match(r"allot \d+\.\d+\.\d+", output)


def test_the_simulated_gpu_works(podman):
    """The command of the chart's test, as user nobody, who may write only to /tmp."""
    output = run(podman, "allot", "run", "--sim", "h200", "--memory", "4GiB", "--cores", "30", "--",
                 "allot-load", "--seconds", "1", "--mib", "1024", "--alloc-over",
                 options=("--user", "65534:65534", "--read-only", "--tmpfs", "/tmp", "--env", "HOME=/tmp"))
    assert "of the GPU" in output


def test_the_daemon_serves_the_host(podman, machine, tmp_path):
    """GPU and NVML are the test's. The tenant is outside the container, and the daemon sees its pids."""
    machine.run_dir.mkdir(parents=True, mode=0o700)
    sim = machine.run_dir / "sim.sock"
    start("allot-sim", "--socket", sim, "--spec", "h200")
    (tmp_path / "settings").write_text("metrics_listen = 127.0.0.1:0\n")
    podman.made.append("daemon")
    podman.check(
        *podman.base, "run", "--detach", "--name", "daemon", "--network", "none", "--pid", "host",
        f"--volume={machine.run_dir}:{machine.run_dir}", f"--volume={tmp_path}:{tmp_path}:ro",
        f"--volume={BUILD / 'sim'}:/sim:ro", "allot.test/allot:1",
        "allotd", "--private", "--foreground", "--run-dir", machine.run_dir, "--sim-socket", sim,
        "--nvml", "/sim/libnvidia-ml.so.1", "--config", tmp_path / "settings")

    def messages():
        return podman.call(*podman.base, "logs", "daemon").stderr

    wait_until(lambda: "ready: 1 GPU" in messages(), what="the daemon")
    assert "metrics are served at 127.0.0.1:" in messages()
    done = machine.run("--memory", "2GiB", "--", *machine.load("--seconds", 0.2, "--json", "--alloc-over"))
    assert done.returncode == 0, done.stderr
    assert '"refused"' in done.stdout
    podman.remove("daemon")


@pytest.mark.parametrize("options, message", [
    (["--name", "Allot"], "--name Allot: must be NAME:TAG"),
    (["--build", "/no/such/tree"], "/no/such/tree/src/daemon/allotd is missing; run scripts/build"),
])
def test_bad_options_are_named(tmp_path, options, message):
    done = build_image(tmp_path / "x.tar", *options)
    assert done.returncode == 1 and message in done.stderr, done.stderr
    assert not (tmp_path / "x.tar").exists()
