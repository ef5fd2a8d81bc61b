"""Profilers, checkers and debuggers in a tenant find the same as natively.

Each tool runs natively and then under `allot run`; its exit status and findings must be the same. A tool that this
machine lacks, or that does not work here natively, is skipped."""

import glob
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

from harness.job import Failed

from . import samples

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tools")
TOOL_S = 120
TERMS = ["--memory", "8GiB"]
SANITIZER = r"ERROR SUMMARY: \d+ errors?|RACECHECK SUMMARY: \d+ hazards?|Invalid __global__ \w+|sum \d+"


@dataclass
class Tool:
    """`command`: in its words, {NAME} stands for the path of a program that is built here, {folder} for a scratch folder.
    `finds`: pattern of the output that is compared. `works`: text that the tool prints natively if it works."""
    name: str
    command: list
    finds: str
    works: str
    environment: dict = field(default_factory=dict)


def gdb(*commands):
    return ["cuda-gdb", "--batch", *(word for command in commands for word in ("-ex", command)), "--args", "{kernels}"]


def sanitizer(part, *arguments):
    return ["compute-sanitizer", "--tool", part, "{kernels}", *arguments]


PYTHON = sys.executable
NCU = ["ncu", "--clock-control", "none", "--launch-count", "1"]
TORCH = [PYTHON, "-c", "import torch; print('sum', torch.ones(8, device='cuda').sum().item())"]
TOOLS = [
    Tool("Nsight Compute, a CUDA program", [*NCU, "{kernels}"], r"==PROF== Profiling \"\w+|==ERROR==.*|sum \d+",
         'Profiling "add_one'),
    Tool("Nsight Compute, PyTorch", [*NCU, *TORCH], r"==PROF== Profiling \"\w+|==ERROR==.*|\w*Error: .*|sum 8.0",
         "==PROF== Profiling"),
    Tool("Nsight Systems", ["nsys", "profile", "--trace", "cuda", "--stats", "true", "-o", "{folder}/profile", "--force-overwrite",
                            "true", "{kernels}"], r"add_one\(int \*, int\)|sum \d+", "add_one(int *, int)"),
    Tool("cuda-gdb, a breakpoint in a kernel", gdb("set breakpoint pending on", "break add_one", "run", "info cuda kernels",
                                                   "delete", "continue"),
         r"hit Breakpoint 1|add_one<<<\(\d+,1,1\),\(\d+,1,1\)>>>|exited normally|sum \d+", "hit Breakpoint 1"),
    Tool("compute-sanitizer memcheck", sanitizer("memcheck"), SANITIZER, "ERROR SUMMARY: 0 errors"),
    # Its count is left out: after the fault the library's own query fails too, and the sanitizer counts that call.
    Tool("compute-sanitizer memcheck, a faulty program", sanitizer("memcheck", "fault"), r"Invalid __global__ \w+",
         "Invalid __global__"),
    Tool("compute-sanitizer initcheck", sanitizer("initcheck"), SANITIZER, "ERROR SUMMARY: 0 errors"),
    Tool("compute-sanitizer synccheck", sanitizer("synccheck"), SANITIZER, "ERROR SUMMARY: 0 errors"),
    Tool("compute-sanitizer racecheck", sanitizer("racecheck"), SANITIZER, "RACECHECK SUMMARY: 0 hazards"),
    Tool("CUPTI's activity interface", ["{activity}"], r"activity .*", "activity 7 "),
    Tool("CUDA_INJECTION64_PATH", ["{kernels}"], r"injection saw \d+ launches|sum \d+", "injection saw 20 launches",
         {"CUDA_INJECTION64_PATH": "{injection}"}),
    Tool("torch.profiler", [PYTHON, os.path.join(FOLDER, "torch_profile.py")], r"profiled [1-9]\d* products", "profiled "),
]


def find_tool(name):
    """Looks for a tool on PATH and in the folders of the CUDA toolkit and of Nsight."""
    places = [samples.TOOLKIT, *glob.glob("/opt/nvidia/nsight-*/*"), *glob.glob("/opt/nvidia/nsight-*/*/bin")]
    return shutil.which(name) or next(filter(None, (shutil.which(name, path=place) for place in places)), None)


def compile_programs(folder):
    """{name: path} of the programs that could be built; not every toolkit has CUPTI."""
    nvcc = samples.find_nvcc()
    if not nvcc or not shutil.which("g++"):
        return {}
    home = os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
    cupti = os.path.join(home, "extras", "CUPTI")
    libraries = [path for path in (os.path.join(cupti, "lib64"), samples.library_folder(nvcc)) if os.path.isdir(path)]
    with_cupti = [f"-I{cupti}/include", *(f"-L{path}" for path in libraries), "-lcupti",
                  *(word for path in libraries for word in ("-Xlinker", f"-rpath={path}"))]
    programs = {}
    for name, flags in (("kernels", ["-lineinfo"]), ("activity", with_cupti),
                        ("injection", [*with_cupti, "-shared", "-Xcompiler", "-fPIC"])):
        path = os.path.join(folder, name)
        done = subprocess.run([nvcc, *samples.FLAGS, *flags, os.path.join(FOLDER, name + ".cu"), "-o", path], capture_output=True,
                              text=True, timeout=samples.COMPILE_S, check=False)
        if done.returncode == 0:
            programs[name] = path
        else:
            print(f"# {name} is not built: {(done.stdout + done.stderr).strip()[-500:]}", flush=True)
    return programs


def fill(tool, folder, programs):
    """The command, with its environment variables first; None if this machine lacks a part of it."""
    needed = set(re.findall(r"\{(\w+)\}", " ".join([*tool.command, *tool.environment.values()]))) - {"folder"}
    program = tool.command[0] if "{" in tool.command[0] else find_tool(tool.command[0])
    if not program or needed - set(programs) or (PYTHON in tool.command and not importlib.util.find_spec("torch")):
        return None
    paths = {"folder": folder, **programs}
    put = lambda word: re.sub(r"\{(\w+)\}", lambda match: paths[match[1]], word)    # noqa: E731
    return ["env", *(f"{name}={put(value)}" for name, value in tool.environment.items()), put(program), *map(put, tool.command[1:])]


def use(tool, job):
    """((exit status, findings), all output)."""
    try:
        status = job.wait(TOOL_S)
    except Failed as error:
        status = str(error)
    said = "\n".join([*job.text(), *job.errors])
    return (status, sorted(set(re.findall(tool.finds, said)))), said


def check(machine, tally, options):
    if machine.sim:
        tally.skip("tools", "the simulated GPU runs none of them")
        return
    with tempfile.TemporaryDirectory(prefix="allot-tools-", dir="/tmp") as folder:
        programs = compile_programs(folder)
        for tool in TOOLS:
            command = fill(tool, folder, programs)
            if not command:
                tally.skip(tool.name, "not here")
                continue
            native, said = use(tool, machine.native("tool", command))
            if tool.works not in said:
                tally.skip(tool.name, f"does not work here natively: {native}: {said[-400:]!r}")
                continue
            tenant, said = use(tool, machine.tenant("tool", command, TERMS))
            tally.verdict(tenant == native, tool.name,
                          str(native) if tenant == native else f"natively {native}, in a tenant {tenant}: {said[-800:]!r}")
