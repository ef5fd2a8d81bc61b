"""All ways in which a program can reach the driver: the quota holds, and the ledger is zero at the end. A way that allot can't
govern is refused with a message."""

import os
import pathlib
import shutil
import subprocess

import pytest

from machines import BUILD, ROOT
from held import (GOVERNED, SIM, Held, can_mount, compile_c, environment_of_commands,
                  find_library, link_with_driver)

LIBRARY = BUILD / "liballot.so"


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """The programs of this file, by name."""
    out = tmp_path_factory.mktemp("ways")
    shared = ["-shared", "-fPIC"]
    return {
        "way": compile_c(out / "way", "way.c", "-ldl"),
        "linked": compile_c(out / "linked", "-DLINKED", "way.c", *link_with_driver()),
        "plugin": compile_c(out / "plugin.so", *shared, "plugin.c", "-ldl"),
        "symbolic": compile_c(out / "symbolic.so", *shared, "-Wl,-Bsymbolic", "plugin.c", "-ldl"),
        "plugin-linked": compile_c(out / "plugin_linked.so", *shared, "-DLINKED", "plugin.c",
                                   *link_with_driver()),
        "odd": compile_c(out / "odd", "odd.c", "-ldl"),
    }


@pytest.fixture
def held(machine):
    return Held(machine)


def assert_governed(held, *command):
    """Runs the command in a tenant; checks its output, and that one allocation was denied."""
    lines, status = held.run(*command)
    assert lines == GOVERNED, (lines, held.errors)
    assert status == 0
    assert held.tenant["devices"][0]["denied"] == 1


def test_a_program_linked_with_the_driver(held, programs):
    assert_governed(held, programs["linked"])


@pytest.mark.parametrize("bound", ["", "1"])
def test_lazy_and_immediate_binding(held, programs, bound):
    assert_governed(held, *environment_of_commands(LD_BIND_NOW=bound), programs["linked"])


@pytest.mark.parametrize("way", ["local", "global", "deepbind", "proc-address"])
def test_a_driver_opened_with_dlopen(held, programs, way):
    assert_governed(held, programs["way"], way)


def test_dlopen_uses_the_runpath_of_its_caller(held, programs, tmp_path):
    """dlopen is hooked, but the loader still sees its caller: it searches that library's RUNPATH."""
    (tmp_path / "sub").mkdir()
    shutil.copy(programs["plugin"], tmp_path / "sub/inner.so")
    outer = tmp_path / "outer.c"
    outer.write_text("""#include <dlfcn.h>
int plugin_run(void);
int plugin_run(void)
{
    void *inner = dlopen("inner.so", RTLD_NOW);
    return inner ? ((int (*)(void))dlsym(inner, "plugin_run"))() : 9;
}
""")
    compile_c(tmp_path / "outer.so", "-shared", "-fPIC", outer, "-ldl", "-Wl,--enable-new-dtags",
              "-Wl,-rpath,$ORIGIN/sub")
    assert_governed(held, programs["way"], "plugin-local", tmp_path / "outer.so")


def test_dlvsym_with_a_missing_version(held, programs):
    lines, status = held.run(programs["way"], "versioned")
    assert (lines, status) in (((["cuInit missing"]), 1), ((GOVERNED), 0))


@pytest.mark.parametrize("plugin", ["plugin", "symbolic", "plugin-linked"])
@pytest.mark.parametrize("way", ["plugin-local", "plugin-deepbind"])
def test_a_plugin(held, programs, way, plugin):
    assert_governed(held, programs["way"], way, programs[plugin])


@pytest.mark.parametrize("plugin", ["plugin", "symbolic", "plugin-linked"])
def test_a_plugin_in_a_new_link_namespace_is_refused(held, programs, plugin):
    lines, status = held.run(programs["way"], "plugin-new-namespace", programs[plugin])
    assert (lines, status) == (["cuInit 802"], 1)
    assert "dlmopen" in held.errors and "load libcuda with dlopen" in held.errors


def test_the_driver_in_a_new_link_namespace_is_refused(held, programs):
    lines, status = held.run(programs["way"], "new-namespace")
    assert (lines, status) == (["cuInit 802"], 1)
    assert "dlmopen" in held.errors


def test_link_namespaces_are_released(held, programs):
    lines, status = held.run(programs["way"], "many-namespaces")
    assert (lines, status) == (["two that differ 1"], 0), held.errors


def test_link_namespaces_outside_a_tenant_work(programs):
    """Outside a tenant dlmopen works as without allot. There is no GPU, so the driver reports that."""
    done = subprocess.run([programs["way"], "new-namespace"], capture_output=True, text=True,
                          env={"LD_PRELOAD": str(LIBRARY), "LD_LIBRARY_PATH": str(SIM)},
                          check=False, timeout=30)
    assert done.stdout.startswith("cuInit ") and "allot" not in done.stderr


def test_two_copies_of_the_driver(held, programs, tmp_path):
    copy = shutil.copy(SIM / "libcuda.so.1", tmp_path / "libcuda.so.1")
    lines, status = held.run(programs["way"], "two-copies", copy)
    assert (lines, status) == (GOVERNED + GOVERNED, 0)


def test_a_copy_of_the_driver_under_another_name(held, programs, tmp_path):
    copy = shutil.copy(SIM / "libcuda.so.1", tmp_path / "libmine.so")
    assert_governed(held, programs["way"], "one-copy", copy)


@pytest.mark.parametrize("length", [0, 100, 5000])
def test_a_truncated_copy(held, programs, tmp_path, length):
    """The loader refuses it; allot must only leave nothing behind."""
    whole = (SIM / "libcuda.so.1").read_bytes()
    (tmp_path / "libcuda.so.1").write_bytes(whole[:length])
    lines, status = held.run(programs["way"], "one-copy", tmp_path / "libcuda.so.1")
    assert status != 0 and GOVERNED[0] not in lines


# -- unusual drivers --

def odd_driver(tmp_path, *defines):
    """Compiles a driver from odd_driver.c; returns the first part of a command that uses it."""
    compile_c(tmp_path / "libcuda.so.1", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1",
              "-Wl,-Bsymbolic", *defines, "odd_driver.c")
    return environment_of_commands(LD_LIBRARY_PATH=tmp_path)


def test_a_driver_without_most_functions(held, programs, tmp_path):
    lines, status = held.run(*odd_driver(tmp_path), programs["odd"])
    assert status == 0, (lines, held.errors)
    assert lines == ["cuInit there there", "cuDriverGetVersion there there",
                     "cuMemAlloc_v2 missing missing", "cuGetProcAddress_v2 missing missing",
                     "cuNoSuchFunction missing missing", "cuInit 0", "cuDriverGetVersion 0 12080"]


def test_a_driver_that_does_not_start(held, programs, tmp_path):
    lines, status = held.run(*odd_driver(tmp_path, "-DINIT=999"), programs["odd"])
    assert status == 0 and "cuInit 999" in lines


def test_a_newer_driver(held, programs, tmp_path):
    lines, status = held.run(*odd_driver(tmp_path, "-DVERSION=99000"), programs["odd"])
    assert status == 0 and lines[-2:] == ["cuInit 0", "cuDriverGetVersion 0 99000"]


# -- NVIDIA's libraries --

CUDART = ROOT / "build/headers/13/nvidia/cu13/lib"


@pytest.mark.parametrize("kind", ["static", "shared"])
def test_the_cuda_runtime(held, tmp_path, kind):
    if not (CUDART / "libcudart_static.a").exists():
        pytest.skip("no CUDA runtime here; scripts/test headers brings it")
    library = ["-lcudart_static"] if kind == "static" else ["-l:libcudart.so.13",
                                                            f"-Wl,-rpath,{CUDART}"]
    program = compile_c(tmp_path / "runtime", "runtime.c", f"-L{CUDART}", *library, "-ldl", "-lrt",
                        "-lpthread", "-lm")
    lines, status = held.run(program)
    assert status == 0
    # The runtime finally requests tables that have no public header, and the simulator has none of them. A GPU gives the
    # first result. By then the runtime has every function from cuGetProcAddress, as above.
    assert lines in ([
        "fits cudaSuccess", "too much cudaErrorMemoryAllocation", f"total {4 << 30}",
        "free cudaSuccess", "reset cudaSuccess"], [
        "fits cudaErrorSymbolNotFound", "too much cudaErrorSymbolNotFound", "total 0",
        "free cudaErrorSymbolNotFound", "reset cudaErrorSymbolNotFound"])


def test_cuda_python(held, python):
    pytest.importorskip("cuda.bindings.driver")
    lines, status = held.run(python, "-c", """
from cuda.bindings import driver as cu
print(int(cu.cuInit(0)[0]))
print(int(cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(0)[1])[0]))
print([int(cu.cuMemAlloc(gib << 30)[0]) for gib in (1, 8)])
print(int(cu.cuDevicePrimaryCtxRelease(0)[0]))
""")
    assert (lines, status) == (["0", "0", "[0, 2]", "0"], 0), held.errors


# -- beside other preloaded libraries --

@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("way", ["linked", "local"])
def test_beside_jemalloc(held, programs, order, way):
    jemalloc = find_library("libjemalloc.so.2")
    preload = [jemalloc, LIBRARY] if order == "before" else [LIBRARY, jemalloc]
    command = [programs["linked"]] if way == "linked" else [programs["way"], way]
    assert_governed(held, *environment_of_commands(LD_PRELOAD=":".join(map(str, preload))), *command)


@pytest.mark.parametrize("order", ["before", "after"])
def test_beside_another_interposer_of_dlsym(held, programs, tmp_path, order):
    other = compile_c(tmp_path / "other.so", "-shared", "-fPIC", ROOT / "tests/preload/other.c",
                      "-ldl")
    preload = [other, LIBRARY] if order == "before" else [LIBRARY, other]
    assert_governed(held, *environment_of_commands(LD_PRELOAD=":".join(map(str, preload))), programs["way"],
                    "local")


def test_a_plugin_as_nccl_loads_it(held, programs):
    """libnccl opens its network plugin by name, with RTLD_LOCAL, and looks up its tables; so does this program."""
    assert_governed(held, programs["way"], "plugin-local", programs["plugin-linked"])


@pytest.mark.parametrize("flags", [["-static-libasan"], []])
def test_a_program_with_address_sanitizer(held, tmp_path, flags):
    program = compile_c(tmp_path / "asan", "-fsanitize=address", *flags, "way.c", "-ldl")
    options = environment_of_commands(
        ASAN_OPTIONS="detect_leaks=0:verify_asan_link_order=0:protect_shadow_gap=0")
    assert_governed(held, *options, program, "local")


def test_a_program_with_thread_sanitizer(held, tmp_path):
    """The sanitizer's runtime wraps the loader's functions, and is not ready when they are first called."""
    program = compile_c(tmp_path / "tsan", "-fsanitize=thread", "way.c", "-ldl")
    alone = subprocess.run([program, "no-such-way"], capture_output=True, check=False, timeout=60)
    if alone.returncode != 2:
        pytest.skip("the thread sanitizer does not run here")
    # It does not see the locks of a library that was built without it.
    options = environment_of_commands(TSAN_OPTIONS="ignore_noninstrumented_modules=1")
    assert_governed(held, *options, program, "local")


# -- /etc/ld.so.preload, and programs without a preload --

def with_etc_ld_so_preload(scratch, *command):
    """The command in a new mount namespace with its own /etc: the machine's file is never touched. LD_PRELOAD is unset."""
    script = (
        'mount -t tmpfs tmpfs "$1" && mkdir "$1/upper" "$1/work" && '
        'mount -t overlay overlay -o "lowerdir=/etc,upperdir=$1/upper,workdir=$1/work" /etc && '
        'echo "$2" > /etc/ld.so.preload && shift 2 && unset LD_PRELOAD && exec "$@"')
    return ["unshare", "--mount", "sh", "-c", script, "sh", scratch, LIBRARY, *command]


def run_with_etc_ld_so_preload(held, scratch, *command):
    """Checks that the command is governed with liballot.so in /etc/ld.so.preload; skips without overlay mounts."""
    scratch.mkdir()
    before = pathlib.Path("/etc/ld.so.preload").exists()
    lines, status = held.run(*with_etc_ld_so_preload(scratch, *command))
    assert pathlib.Path("/etc/ld.so.preload").exists() == before
    if status != 0 and not lines:
        pytest.skip(f"no overlay here: {held.errors.strip()}")
    assert (lines, status) == (GOVERNED, 0), held.errors


@pytest.mark.skipif(not can_mount(), reason="can't mount here")
def test_etc_ld_so_preload(held, programs, tmp_path):
    run_with_etc_ld_so_preload(held, tmp_path / "scratch", programs["way"], "local")


@pytest.fixture
def secure_program(programs, tmp_path):
    """A program that the kernel starts with AT_SECURE: it is setgid with the group of nobody."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a setgid program")
    program = shutil.copy(programs["way"], tmp_path / "secure")
    os.chown(program, 0, 65534)
    os.chmod(program, 0o2755)
    return program


def test_secure_execution_ignores_ld_preload(held, secure_program):
    """The loader ignores it, a limit that docs/internals/ways-in.md documents. Nothing crashes, and nothing is left behind."""
    lines, status = held.run(secure_program, "one-copy", SIM / "libcuda.so.1")
    assert (lines[2], status) == ("too much 0", 0)


@pytest.mark.skipif(not can_mount(), reason="can't mount here")
def test_secure_execution_with_etc_ld_so_preload(held, secure_program, tmp_path):
    run_with_etc_ld_so_preload(held, tmp_path / "scratch", secure_program, "one-copy",
                               SIM / "libcuda.so.1")


def test_a_program_with_musl_is_refused(held, tmp_path):
    """NVIDIA's driver needs glibc: musl's loader reports that, and nothing is ungoverned."""
    program = compile_c(tmp_path / "musl", "way.c", compiler="musl-gcc")
    lines, status = held.run(program, "local")
    assert status == 1 and lines[0].startswith("refused: "), (lines, held.errors)


def test_a_static_program_runs_in_a_tenant(held, tmp_path):
    """Nothing can be preloaded into a static program. It ends with a usage error here: this does not try to open the driver."""
    done = subprocess.run(["gcc", "-static", "-D_GNU_SOURCE", "-w", "-o", tmp_path / "static",
                           ROOT / "tests/integration/programs/way.c", "-ldl"],
                          capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("no static libc here")
    lines, status = held.run(tmp_path / "static", "no-such-way")
    assert (lines, status) == ([], 2)
