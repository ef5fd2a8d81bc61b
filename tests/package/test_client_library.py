"""liballot-client as other projects use it: by pkg-config, in C99 and C++, against a real daemon."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

import tutorial
from packages import ROOT, run
from machines import BUILD

SOURCE = ROOT / "src/client"


def symbols_of(library):
    """{name: version} of the exported functions."""
    lines = run("nm", "-D", "--defined-only", library).splitlines()
    return dict(re.match(r"\S+ T (\w+)@@(\S+)", line).groups() for line in lines if " T " in line)


def test_exports_match_the_header():
    header = (SOURCE / "allot-client.h").read_text()
    code = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    declared = set(re.findall(r"\b(allot_\w+)\(", code))
    exported = symbols_of(BUILD / "liballot-client.so.0")
    assert set(exported) == declared
    assert set(exported.values()) == {"LIBALLOT_CLIENT_0.1"}
    # Debian's packages depend on these; each change of the file is reviewed.
    symbols = (ROOT / "debian/liballot-client0.symbols").read_text()
    assert set(re.findall(r"^ (allot_\w+)@LIBALLOT_CLIENT_0.1 ", symbols, re.M)) == declared


def compile_client(installed, output, *more):
    """Compiles use_client.c by pkg-config against the installed library; returns the folder of libraries."""
    pc, = pathlib.Path(installed).rglob("allot-client.pc")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(pc.parent),
                   "PKG_CONFIG_SYSROOT_DIR": str(installed.parent.parent)}
    flags = run("pkg-config", "--cflags", "--libs", "allot-client", env=environment).split()
    run("gcc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wstrict-prototypes", "-Werror", "-o", output,
        ROOT / "tests/package/programs/use_client.c", *flags, *more)
    return pc.parent.parent


def test_the_header_compiles_as_cplusplus(tmp_path):
    if not shutil.which("g++"):
        pytest.skip("no g++ here")
    (tmp_path / "a.cc").write_text('#include <allot-client.h>\nint main() { return allot_client_version() == 0; }\n')
    run("g++", "-std=c++11", "-pedantic", "-Wall", "-Werror", "-fsyntax-only", f"-I{SOURCE}", tmp_path / "a.cc")


def test_the_program_of_the_guide_compiles(installed, tmp_path):
    """The program in docs/guide/embed.md is built by the command line in it."""
    blocks = tutorial.blocks(ROOT / "docs/guide/embed.md")
    program, = (text for language, text in blocks if language == "c")
    command, = (text for language, text in blocks if text.startswith("cc "))
    (tmp_path / "change.c").write_text(program)
    pc, = pathlib.Path(installed).rglob("allot-client.pc")
    run("sh", "-ec", command, cwd=tmp_path, env={**os.environ, "PKG_CONFIG_PATH": str(pc.parent),
                                                 "PKG_CONFIG_SYSROOT_DIR": str(installed.parent.parent)})
    assert os.access(tmp_path / "change", os.X_OK)


def test_a_program_lists_changes_and_pauses_tenants(machine2, installed, tmp_path):
    libraries = compile_client(installed, tmp_path / "use_client")
    machine2.start("--gpu", "0,1", "--memory", "2GiB", "--cores", 30, "--name", "a", "--", "sleep", 60)
    machine2.wait_for_tenant("a")
    before = machine2.ps()
    done = subprocess.run([tmp_path / "use_client", machine2.run_dir, "a"], capture_output=True, text=True, check=False,
                          env={**machine2.environment, "LD_LIBRARY_PATH": str(libraries)})
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "nowhere -2 no daemon runs in /nowhere"
    assert lines[1].startswith("daemon allotd ")
    for i, device in enumerate(before["devices"]):
        assert lines[2 + 2 * i] == (f"device {i} {device['uuid']} {device['name']} {device['memory_bytes']} "
                                    f"{device['memory_used_bytes']} 0")
        assert lines[3 + 2 * i] == f"device-state 0 30 {2 << 30} healthy 0"
    assert re.fullmatch(rf"tenant a (starting|idle) {os.getuid()} 0", lines[6])
    assert lines[7::2][:2] == [f"share {i} {2 << 30} 1 0 30 30 30" for i in range(2)]
    assert lines[8::2][:2] == ["share-got 0 0 0 0"] * 2
    assert lines[11] == "warnings "
    assert lines[12].startswith("set-nobody -2 2 ") and "nobody" in lines[12]
    assert lines[13] == "flags -22"
    assert f"tenant a paused {os.getuid()} 7" in lines
    assert f"share 0 {3 << 30} 1 0 20 20 20" in lines and f"share 1 {2 << 30} 1 0 30 70 70" in lines
    assert lines[-2:] == ["hello 1", "members -22"]
    assert machine2.tenants()["a"]["state"] != "paused"
