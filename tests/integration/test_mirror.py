"""allot mirror: a directory of the driver's libraries, for LD_LIBRARY_PATH or a mount. It loads liballot.so before the driver.
The driver is that of a fake root file system, or the simulated one."""

import json
import os
import pathlib
import shutil
import struct
import subprocess

import pytest

from machines import ROOT
from held import GOVERNED, SIM, Held, compile_c, find_library, link_with_driver

VERSION = "580.159.04"


def make_cache(entries):
    """The bytes of an ld.so.cache (glibc's sysdeps/generic/dl-cache.h) with these (soname, path) entries."""
    header = 48
    strings, offsets = b"", []
    start = header + 24 * len(entries)
    for name, path in entries:
        offsets.append((start + len(strings), start + len(strings) + len(name) + 1))
        strings += name.encode() + b"\0" + path.encode() + b"\0"
    rows = b"".join(struct.pack("=iIIIQ", 0x303, name, path, 0, 0) for name, path in offsets)
    return (b"glibc-ld.so.cache1.1" + struct.pack("=II4xI12x", len(entries), len(strings), 0) +
            rows + strings)


class Root:
    """A fake root directory, with libraries that have no code."""

    def __init__(self, path):
        self.path = path
        self.entries = []
        (path / "etc").mkdir(parents=True)
        (path / "usr/bin").mkdir(parents=True)

    def make_library(self, file_name, soname, *arguments, directory="usr/lib/here"):
        folder = self.path / directory
        folder.mkdir(parents=True, exist_ok=True)
        empty = self.path / "empty.c"
        empty.write_text("")
        compile_c(folder / file_name, "-shared", "-nostdlib", f"-Wl,-soname,{soname}", *arguments,
                  empty)
        return self.name(file_name, soname, directory)

    def name(self, file_name, soname, directory="usr/lib/here"):
        if file_name != soname:
            link = self.path / directory / soname
            link.unlink(missing_ok=True)
            link.symlink_to(file_name)
        self.entries.append((soname, f"/{directory}/{soname}"))
        self.write_cache()

    def write_cache(self):
        (self.path / "etc/ld.so.cache").write_bytes(make_cache(self.entries))

    def program(self, name):
        path = self.path / "usr/bin" / name
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        return path

    def driver(self):
        self.make_library(f"libcuda.so.{VERSION}", "libcuda.so.1")
        self.make_library(f"libnvidia-ml.so.{VERSION}", "libnvidia-ml.so.1")
        self.make_library(f"libnvidia-ptxjitcompiler.so.{VERSION}", "libnvidia-ptxjitcompiler.so.1")
        self.program("nvidia-smi")
        return self


@pytest.fixture
def root(tmp_path):
    return Root(tmp_path / "root")


def mirror(machine, *arguments, status=0):
    """Runs `allot mirror`, which must end with `status`; returns its stdout, or its stderr if it failed."""
    result = machine.allot("mirror", *arguments)
    assert result.returncode == status, result.stderr
    return result.stdout if status == 0 else result.stderr


def tree(target):
    return sorted(str(path.relative_to(target)) for path in target.rglob("*")
                  if not path.is_dir() or path.is_symlink())


def test_contents(machine, root, tmp_path):
    root.driver()
    target = tmp_path / "driver"
    out = mirror(machine, "--root", root.path, target)
    assert VERSION in out
    assert tree(target) == [
        "bin/nvidia-smi", "lib64/liballot.so", "lib64/libcuda.so", "lib64/libcuda.so.1",
        f"lib64/libcuda.so.{VERSION}", "lib64/libnvidia-ml.so", "lib64/libnvidia-ml.so.1",
        f"lib64/libnvidia-ml.so.{VERSION}", "lib64/libnvidia-ptxjitcompiler.so.1",
        f"lib64/libnvidia-ptxjitcompiler.so.{VERSION}", "versions"]
    assert (target / "lib").is_dir()
    # Shims are regular files, because ldconfig would replace a symbolic link.
    assert not (target / "lib64/libcuda.so.1").is_symlink()
    assert (target / "lib64/libnvidia-ptxjitcompiler.so.1").readlink() == pathlib.Path(
        f"libnvidia-ptxjitcompiler.so.{VERSION}")
    source = root.path / f"usr/lib/here/libcuda.so.{VERSION}"
    assert os.path.samefile(source, target / f"lib64/libcuda.so.{VERSION}")
    record = json.loads((target / "versions").read_text())
    assert record["driver"] == VERSION
    assert record["files"][f"lib64/libcuda.so.{VERSION}"]["version"] == VERSION
    assert record["files"]["lib64/libcuda.so.1"] == {"shim": f"libcuda.so.{VERSION}"}


def test_a_shim_needs_liballot_before_the_driver(machine, root, tmp_path):
    root.driver()
    mirror(machine, "--root", root.path, tmp_path / "driver")
    shown = subprocess.run(["readelf", "-dW", tmp_path / "driver/lib64/libcuda.so.1"],
                           capture_output=True, text=True, check=True)
    assert shown.stderr == ""
    needed = [line.split("[")[1].rstrip("]") for line in shown.stdout.splitlines()
              if "NEEDED" in line]
    assert needed == ["liballot.so", f"libcuda.so.{VERSION}"]
    assert "[$ORIGIN]" in shown.stdout


def test_a_second_run_replaces_only_changes(machine, root, tmp_path):
    """A second run leaves an unchanged mirror alone. It replaces a changed one atomically, and leaves nothing beside it."""
    root.driver()
    target = tmp_path / "driver"
    mirror(machine, "--root", root.path, target)
    inode = target.stat().st_ino
    assert "unchanged" in mirror(machine, "--root", root.path, target)
    assert target.stat().st_ino == inode
    root.make_library(f"libnvidia-cfg.so.{VERSION}", "libnvidia-cfg.so.1")
    assert "unchanged" not in mirror(machine, "--root", root.path, f"{target}/")
    assert target.stat().st_ino != inode
    assert (target / "lib64/libnvidia-cfg.so.1").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["driver", "root"]


def test_removing_the_mirror_restores_everything(machine, root, tmp_path):
    root.driver()
    before = {path: path.read_bytes() for path in root.path.rglob("*") if path.is_file()}
    mirror(machine, "--root", root.path, tmp_path / "driver")
    shutil.rmtree(tmp_path / "driver")
    assert before == {path: path.read_bytes() for path in root.path.rglob("*") if path.is_file()}


def test_other_directories_are_never_replaced(machine, root, tmp_path):
    root.driver()
    target = tmp_path / "precious"
    target.mkdir()
    (target / "file").write_text("x")
    assert "not a mirror" in mirror(machine, "--root", root.path, target, status=1)
    assert tree(target) == ["file"]
    (target / "file").unlink()
    # Other programs have a file or a folder of the name of a mirror's record.
    for make in (lambda path: path.mkdir(), lambda path: path.write_text("3.12\n"), lambda path: path.write_text("{}"),
                 lambda path: path.symlink_to(tmp_path / "record"), os.mkfifo):
        make(target / "versions")
        assert "not a mirror" in mirror(machine, "--root", root.path, target, status=1)
        assert os.listdir(target) == ["versions"]
        (target / "versions").rmdir() if (target / "versions").is_dir() else (target / "versions").unlink()
    mirror(machine, "--root", root.path, target)
    assert (target / "lib64/libcuda.so.1").exists()


def test_the_block_list(machine, root, tmp_path):
    """Other vendors' GL libraries, and libc, are never mirrored, even if a configuration names them."""
    root.driver()
    root.make_library("libnvidia-tls.so.1", "libnvidia-tls.so.1")
    needs = ["-Wl,--no-as-needed", f"-L{root.path}/usr/lib/here", "-l:libnvidia-tls.so.1"]
    root.make_library("libGL.so.1.7.0", "libGL.so.1")
    root.make_library("libEGL.so.1.0.0", "libEGL.so.1", *needs)
    root.make_library("libc.so.6", "libc.so.6")
    config = tmp_path / "volume.conf"
    config.write_text(json.dumps({"volume": [{
        "name": "nvidia", "base": "/etc/gpu-manager/vdriver", "components": {
            "binaries": ["nvidia-smi", "no-such-program"],
            "libraries": ["libcuda.so", "libGL.so", "libEGL.so", "libc.so", "libnothing.so"]}}]}))
    target = tmp_path / "driver"
    mirror(machine, "--root", root.path, "--config", config, target)
    assert tree(target) == ["bin/nvidia-smi", "lib64/libEGL.so.1", "lib64/libEGL.so.1.0.0",
                            "lib64/liballot.so", "lib64/libcuda.so", "lib64/libcuda.so.1",
                            f"lib64/libcuda.so.{VERSION}", "versions"]


def write_32_bit_library(path):
    """Writes a 32-bit library with one segment and a SONAME, without a 32-bit compiler."""
    def build(soname):
        strings = b"\0" + soname.encode() + b"\0"
        dynamic = struct.pack("<8I", 14, 1, 5, 148, 6, 148, 0, 0)
        header = (b"\x7fELF\1\1\1" + bytes(9) + struct.pack("<HHIIIIIHHHHHH", 3, 3, 1, 0, 52, 0, 0,
                                                           52, 32, 2, 0, 0, 0))
        size = 148 + len(strings)
        load = struct.pack("<8I", 1, 0, 0, 0, size, size, 6, 4096)
        dynamic_segment = struct.pack("<8I", 2, 116, 116, 116, 32, 32, 6, 4)
        return header + load + dynamic_segment + dynamic + strings

    return path.write_bytes(build(path.name.rsplit(".", 1)[0] + ".1"))


def test_32_bit_libraries(machine, root, tmp_path):
    """32-bit libraries are mirrored in lib, except libcuda: liballot.so has 64 bits, so 32-bit programs would be ungoverned."""
    root.driver()
    folder = root.path / "usr/lib32"
    folder.mkdir()
    for name in ("libnvidia-ptxjitcompiler.so", "libcuda.so"):
        write_32_bit_library(folder / f"{name}.5")
        root.name(f"{name}.5", f"{name}.1", "usr/lib32")
    target = tmp_path / "driver"
    mirror(machine, "--root", root.path, target)
    assert [path for path in tree(target) if path.startswith("lib/")] == [
        "lib/libnvidia-ptxjitcompiler.so.1", "lib/libnvidia-ptxjitcompiler.so.5"]


BAD_CONFIGS = [
    ("", "line 1"),
    ("[1,", "line 1"),
    ("{}", '"volume"'),
    ('{"volume": []}', '"volume"'),
    ('{"volume": [{"name": "a"}]}', "volume 1: \"components\""),
    ('{"volume": [{"components": {"libraries": "x"}}]}', '"libraries"'),
    ('{"volume": [{"components": {"libraries": [1]}}]}', "entry 1"),
    ('{"volume": [{"components": {"libraries": ["../x"]}}]}', "entry 1"),
    ('{"volume": [{"components": {"binaries": ["x"]}}]}', "no volume lists a library"),
]


def test_the_form_of_gpu_manager(machine, root, tmp_path):
    """gpu-manager's file has two volumes with modes and places, a program of its own, and its own library."""
    root.driver()
    root.make_library(f"libGLX_nvidia.so.{VERSION}", "libGLX_nvidia.so.0")
    config = tmp_path / "volume.conf"
    parts = {"binaries": ["nvidia-smi", "gpu-client"],
             "libraries": ["libcuda.so", "libcuda-control.so", "libnvidia-ml.so", "libGLX_nvidia.so"]}
    config.write_text(json.dumps({"volume": [
        {"name": name, "base": "/etc/gpu-manager/vdriver", "mode": "ro", "components": parts} for name in ("nvidia", "origin")]}))
    mirror(machine, "--root", root.path, "--config", config, tmp_path / "driver")
    names = tree(tmp_path / "driver")
    assert {"bin/nvidia-smi", "lib64/libGLX_nvidia.so.0", "lib64/libcuda.so.1"} <= set(names)
    assert not [name for name in names if "control" in name or "client" in name]


@pytest.mark.parametrize("text, part", BAD_CONFIGS)
def test_a_bad_configuration(machine, root, tmp_path, text, part):
    root.driver()
    config = tmp_path / "volume.conf"
    config.write_text(text)
    errors = mirror(machine, "--root", root.path, "--config", config, tmp_path / "driver",
                    status=1)
    assert part in errors and str(config) in errors and errors.count("\n") == 1
    assert not (tmp_path / "driver").exists()


def test_no_driver(machine, root, tmp_path):
    root.make_library("libother.so.1", "libother.so.1")
    assert "libcuda.so.1" in mirror(machine, "--root", root.path, tmp_path / "driver", status=1)
    (root.path / "etc/ld.so.cache").write_bytes(b"nothing")
    assert "cache" in mirror(machine, "--root", root.path, tmp_path / "driver", status=1)
    (root.path / "etc/ld.so.cache").unlink()
    assert "ld.so.cache" in mirror(machine, "--root", root.path, tmp_path / "driver", status=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["root"]


def test_a_link_that_leads_out_of_the_root(machine, root, tmp_path):
    root.driver()
    outside = tmp_path / "libnvidia-cfg.so.1"
    shutil.copy(root.path / f"usr/lib/here/libcuda.so.{VERSION}", outside)
    (root.path / "usr/lib/here/libnvidia-cfg.so.1").symlink_to(outside)
    root.entries.append(("libnvidia-cfg.so.1", "/usr/lib/here/libnvidia-cfg.so.1"))
    root.write_cache()
    mirror(machine, "--root", root.path, tmp_path / "driver")
    assert not (tmp_path / "driver/lib64/libnvidia-cfg.so.1").exists()


def test_bad_usage(machine):
    assert "one directory" in mirror(machine, status=2)
    assert "--rot" in mirror(machine, "--rot", "/", "x", status=2)


def test_files_are_copied_to_another_file_system(machine, root, tmp_path):
    """Hard links can't cross file systems: here from the test's directory to /dev/shm."""
    shm = pathlib.Path("/dev/shm")
    if not shm.is_dir() or shm.stat().st_dev == tmp_path.stat().st_dev or not os.access(shm, os.W_OK):
        pytest.skip("no second file system to write to")
    root.driver()
    target = shm / f"allot-test-{os.getpid()}"
    try:
        mirror(machine, "--root", root.path, target)
        copy = target / f"lib64/libcuda.so.{VERSION}"
        source = root.path / f"usr/lib/here/libcuda.so.{VERSION}"
        assert copy.read_bytes() == source.read_bytes() and copy.stat().st_nlink == 1
        assert "unchanged" in mirror(machine, "--root", root.path, target)
    finally:
        shutil.rmtree(target, ignore_errors=True)


# -- programs that run with a mirror, on the simulator --

@pytest.fixture
def simulated(machine, root, tmp_path):
    """The library directory of a mirror of the simulator's driver, whose files are named as NVIDIA's are."""
    folder = root.path / "usr/lib/here"
    folder.mkdir(parents=True)
    for name in ("libcuda.so", "libnvidia-ml.so"):
        shutil.copy(SIM / f"{name}.1", folder / f"{name}.{VERSION}")
        root.name(f"{name}.{VERSION}", f"{name}.1")
    mirror(machine, "--root", root.path, tmp_path / "driver")
    return tmp_path / "driver/lib64"


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    out = tmp_path_factory.mktemp("mirror")
    return {
        "way": compile_c(out / "way", "way.c", "-ldl"),
        "linked": compile_c(out / "linked", "-DLINKED", "way.c", *link_with_driver()),
        "plugin": compile_c(out / "plugin.so", "-shared", "-fPIC", "plugin.c", "-ldl"),
        "plugin-linked": compile_c(out / "plugin_linked.so", "-shared", "-fPIC", "-DLINKED",
                                   "plugin.c", *link_with_driver()),
    }


def without_preload(lib64):
    return ["env", "-u", "LD_PRELOAD", f"LD_LIBRARY_PATH={lib64}"]


@pytest.mark.parametrize("command", [
    ["linked"], ["way", "local"], ["way", "global"], ["way", "deepbind"], ["way", "proc-address"],
    ["way", "plugin-local", "plugin"], ["way", "plugin-local", "plugin-linked"],
    ["way", "plugin-deepbind", "plugin"], ["way", "plugin-deepbind", "plugin-linked"],
], ids=" ".join)
@pytest.mark.parametrize("preload", [False, True])
def test_programs_are_governed_through_the_mirror(machine, programs, simulated, command, preload):
    arguments = [programs[command[0]], *(programs.get(word, word) for word in command[1:])]
    before = ["env", f"LD_LIBRARY_PATH={simulated}"] if preload else without_preload(simulated)
    held = Held(machine)
    lines, status = held.run(*before, *arguments)
    assert (lines, status) == (GOVERNED, 0), held.errors


@pytest.mark.parametrize("command", [["way", "new-namespace"],
                                     ["way", "plugin-new-namespace", "plugin"]], ids=" ".join)
def test_a_new_link_namespace_is_refused(machine, programs, simulated, command):
    arguments = [programs[command[0]], *(programs.get(word, word) for word in command[1:])]
    held = Held(machine)
    lines, status = held.run(*without_preload(simulated), *arguments)
    assert (lines, status) == (["cuInit 802"], 1)
    assert "dlmopen" in held.errors


def test_the_shim_alone_leads_to_its_dependencies(machine, programs, simulated, tmp_path):
    """The shim's RUNPATH leads to its dependencies, so a program needs to find only the shim."""
    alone = tmp_path / "alone"
    alone.mkdir()
    held = Held(machine)
    lines, status = held.run(*without_preload(alone), programs["way"], "one-copy",
                             simulated / "libcuda.so.1")
    assert (lines, status) == (GOVERNED, 0), held.errors


@pytest.mark.parametrize("other", ["interposer", "jemalloc"])
def test_beside_a_preloaded_library(machine, programs, simulated, tmp_path, other):
    if other == "jemalloc":
        library = find_library("libjemalloc.so.2")
    else:
        library = compile_c(tmp_path / "other.so", "-shared", "-fPIC",
                            ROOT / "tests/preload/other.c", "-ldl")
    held = Held(machine)
    lines, status = held.run("env", f"LD_PRELOAD={library}", f"LD_LIBRARY_PATH={simulated}",
                             programs["way"], "local")
    assert (lines, status) == (GOVERNED, 0), held.errors


def test_a_program_with_address_sanitizer(machine, simulated, tmp_path):
    program = compile_c(tmp_path / "asan", "-fsanitize=address", "way.c", "-ldl")
    held = Held(machine)
    lines, status = held.run(*without_preload(simulated),
                             "ASAN_OPTIONS=detect_leaks=0:protect_shadow_gap=0", program, "local")
    assert (lines, status) == (GOVERNED, 0), held.errors


def test_nvml_through_the_mirror(machine, simulated, python):
    pytest.importorskip("pynvml")
    held = Held(machine)
    lines, status = held.run(*without_preload(simulated), python, "-c", """
import pynvml
pynvml.nvmlInit()
print(pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0)).total >> 30)
""")
    assert (lines, status) == (["4"], 0), held.errors


def test_a_driver_file_with_the_name_of_the_shim(machine, programs, root, tmp_path):
    folder = root.path / "usr/lib/here"
    folder.mkdir(parents=True)
    shutil.copy(SIM / "libcuda.so.1", folder)
    root.name("libcuda.so.1", "libcuda.so.1")
    target = tmp_path / "driver"
    mirror(machine, "--root", root.path, target)
    held = Held(machine)
    lines, status = held.run(*without_preload(target / "lib64"), programs["way"], "local")
    assert (lines, status) == (GOVERNED, 0), held.errors


def test_outside_a_tenant(programs, simulated):
    """Outside a tenant the program runs as if the mirror were the driver's own directory."""
    done = subprocess.run([programs["way"], "local"], capture_output=True, text=True, check=False,
                          env={"LD_LIBRARY_PATH": str(simulated)}, timeout=30)
    assert done.stdout.startswith("cuInit ") and "allot" not in done.stderr
