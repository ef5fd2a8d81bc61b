"""A tenant's virtual GPU: CUDA and NVML agree in a tenant, in every version of every call. nvidia-ml-py, nvitop and nvtop show
the tenant's quota, processes and GPU use. For MIG instances see test_mig.py."""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import termios
import textwrap
import time

import pytest

from machines import BUILD, GIB, make_machine

pytest.importorskip("pynvml")
pytest.importorskip("cuda.bindings.driver")

CONTEXT = 518 << 20

# The first part of the programs that run in a tenant; they print JSON.
PREAMBLE = """
import ctypes, json, os, subprocess, sys, time
import pynvml as nv
from cuda.bindings import driver as cu

def ok(result):
    assert int(result[0]) == 0, result[0]
    return result[1] if len(result) == 2 else result[1:]

def failure(call, *args):
    try:
        call(*args)
    except nv.NVMLError as error:
        return error.value

def start(ordinal=0):
    ok(cu.cuInit(0))
    ok(cu.cuCtxSetCurrent(ok(cu.cuDevicePrimaryCtxRetain(ok(cu.cuDeviceGet(ordinal))))))

def uuid_of(ordinal):
    h = bytes(ok(cu.cuDeviceGetUuid(ordinal)).bytes).hex()
    return f"GPU-{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"

def start_loads(*options_of_each):
    '''Starts saturating processes of this tenant; returns when each has done work.'''
    started = []
    for options in options_of_each:
        p = subprocess.Popen([LOAD, "--json", "--seconds", "60", *options], stdout=subprocess.PIPE)
        started.append(p)
    for p in started:
        while b'"t_s"' not in p.stdout.readline() and p.poll() is None:
            pass
    return started

lib = ctypes.CDLL("libnvidia-ml.so.1")
nv.nvmlInit()
"""


def program(code):
    return PREAMBLE + f"LOAD = {str(BUILD / 'allot-load')!r}\n" + textwrap.dedent(code)


def run_json(machine, python, code, *options, **more):
    """Runs the code in a tenant; returns the JSON value that it prints last."""
    result = machine.run(*options, "--", python, "-c", program(code), **more)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


@pytest.fixture
def neighbour(machine):
    """Another tenant, which keeps the GPU busy."""
    process = machine.start("--name", "neighbour", "--cores", "40", "--memory", "8GiB", "--",
                            *machine.load("--seconds", "120"))
    while '"t_s"' not in process.stdout.readline() and process.poll() is None:
        pass
    return machine.wait_for_tenant("neighbour")


def test_invalid_indices_and_initialization_without_devices(machine, python):
    """As on a real GPU: NVML has no devices if initialized without attaching. For an invalid index, the old call outputs the
    last handle, and the new call leaves the output unchanged."""
    shown = run_json(machine, python, """
        def by_index(function, index):
            h = ctypes.c_void_p(0x1234)
            return [getattr(lib, function)(index, ctypes.byref(h)), h.value]

        last = nv.nvmlDeviceGetHandleByIndex(0)
        last = ctypes.cast(last, ctypes.c_void_p).value
        found = {"last": last, "old": by_index("nvmlDeviceGetHandleByIndex", 7),
                 "new": by_index("nvmlDeviceGetHandleByIndex_v2", 7)}
        nv.nvmlShutdown()
        nv.nvmlInitWithFlags(2)
        found["count"] = nv.nvmlDeviceGetCount()
        found["old without"] = by_index("nvmlDeviceGetHandleByIndex", 0)
        found["new without"] = by_index("nvmlDeviceGetHandleByIndex_v2", 0)
        print(json.dumps(found))
        """)
    assert shown == {"last": shown["last"], "old": [2, shown["last"]], "new": [2, 0x1234], "count": 0,
                     "old without": [2, 0x1234], "new without": [2, 0x1234]}


def test_all_versions_of_calls_for_memory_and_processes(machine, python, neighbour):
    shown = run_json(machine, python, """
        start()
        ok(cu.cuMemAlloc(1 << 30))
        child, = start_loads(["--mib", "256"])
        ended = subprocess.Popen(["true"])
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        h = nv.nvmlDeviceGetHandleByIndex(0)
        m1, m2 = nv.nvmlDeviceGetMemoryInfo(h), nv.nvmlDeviceGetMemoryInfo(h, version=nv.nvmlMemory_v2)
        free, total = map(int, ok(cu.cuMemGetInfo()))

        class V1(ctypes.Structure):
            _fields_ = [("pid", ctypes.c_uint), ("usedGpuMemory", ctypes.c_ulonglong)]

        def listed(name, entry, room):
            count = ctypes.c_uint(room)
            rows = (entry * max(room, 1))()
            result = getattr(lib, name)(h, ctypes.byref(count), rows if room else None)
            return [result, count.value, sorted((r.pid, r.usedGpuMemory) for r in rows[:count.value]
                                                if result == 0)]

        lists = {}
        for kind in ("Compute", "Graphics", "MPSCompute"):
            for version, entry in (("", V1), ("_v2", nv.c_nvmlProcessInfo_v2_t),
                                   ("_v3", nv.c_nvmlProcessInfo_v2_t)):
                name = f"nvmlDeviceGet{kind}RunningProcesses{version}"
                lists[kind + version] = [listed(name, entry, room) for room in (0, 1, 16)]
        detail = {mode: sorted((p.pid, p.usedGpuMemory) for p in
                               nv.nvmlDeviceGetRunningProcessDetailList(h, 0x1000018, mode))
                  for mode in (0, 1, 2)}
        print(json.dumps({
            "self": os.getpid(), "child": child.pid,
            "nvml": [m1.total, m1.used, m1.free], "v2": [m2.total, m2.used, m2.free, m2.reserved],
            "cuda": [total, total - free, free], "total_mem": int(ok(cu.cuDeviceTotalMem(0))),
            "lists": lists, "detail": detail,
            "wrong_versions": [failure(nv.nvmlDeviceGetRunningProcessDetailList, h, 0x2000018, 0),
                               failure(nv.nvmlDeviceGetMemoryInfo, h, 0x3000028)],
            "no_mode": failure(nv.nvmlDeviceGetRunningProcessDetailList, h, 0x1000018, 3),
            "names": [nv.nvmlSystemGetProcessName(os.getpid()), sys.executable],
            "no_process": failure(nv.nvmlSystemGetProcessName, 1 << 30),
            "no_name": failure(nv.nvmlSystemGetProcessName, ended.pid)}))
        child.kill()
        """, "--memory", "4GiB", "--cores", "30", "--name", "own")
    own, child = shown["self"], shown["child"]
    listed = sorted([[own, CONTEXT + GIB], [child, CONTEXT + (256 << 20)]])
    used = sum(bytes_ for _, bytes_ in listed)
    assert shown["nvml"] == [4 * GIB, used, 4 * GIB - used]
    assert shown["v2"] == [*shown["nvml"], 0]
    assert shown["cuda"] == shown["nvml"] and shown["total_mem"] == 4 * GIB
    for version in ("", "_v2", "_v3"):
        # NVML_ERROR_INSUFFICIENT_SIZE with the sufficient count.
        assert shown["lists"]["Compute" + version] == [[7, 2, []], [7, 2, []], [0, 2, listed]]
        for kind in ("Graphics", "MPSCompute"):
            assert shown["lists"][kind + version] == [[0, 0, []]] * 3
    assert shown["detail"] == {"0": listed, "1": [], "2": []}
    assert shown["wrong_versions"] == [25, 25]   # NVML_ERROR_ARGUMENT_VERSION_MISMATCH
    assert shown["no_mode"] == 2   # NVML_ERROR_INVALID_ARGUMENT
    assert shown["names"][0] == shown["names"][1] and shown["no_process"] == 6
    assert shown["no_name"] == 21   # NVML_ERROR_NO_DATA


def test_utilization_is_relative_to_the_tenants_share(machine, python, neighbour):
    """Two processes use all of the tenant's 20 %, so NVML reports a full GPU. The neighbour's utilization and the
    physical GPU's counters are not available."""
    shown = run_json(machine, python, """
        h = nv.nvmlDeviceGetHandleByIndex(0)
        idle = [nv.nvmlDeviceGetUtilizationRates(h).gpu, nv.nvmlDeviceGetUtilizationRates(h).memory,
                failure(nv.nvmlDeviceGetProcessUtilization, h, 0)]
        children = start_loads([], ["--mib", "1024"])
        # Wait until both are at work, and all calls return the same figure, which changes 20 times a second.
        until = time.monotonic() + 60
        while time.monotonic() < until:
            rates = nv.nvmlDeviceGetUtilizationRates(h)
            kind, samples = nv.nvmlDeviceGetSamples(h, nv.NVML_GPU_UTILIZATION_SAMPLES, 0)
            _, memory = nv.nvmlDeviceGetSamples(h, nv.NVML_MEMORY_UTILIZATION_SAMPLES, 0)
            by_process = nv.nvmlDeviceGetProcessUtilization(h, 0)
            newer = nv.nvmlDeviceGetProcessesUtilizationInfo(h, 0)
            figures = [samples[-1].sampleValue.uiVal, nv.nvmlDeviceGetUtilizationRates(h).gpu]
            shares = [s.smUtil for s in [*by_process, *newer]]
            if figures == [rates.gpu] * 2 and rates.gpu >= 80 and len(shares) == 4 and min(shares) >= 25:
                break
            time.sleep(0.02)
        print(json.dumps({
            "idle": idle, "rates": [rates.gpu, rates.memory], "kind": kind,
            "samples": [s.sampleValue.uiVal for s in samples],
            "memory_samples": [s.sampleValue.uiVal for s in memory],
            "fresh": abs(samples[-1].timeStamp / 1e6 - time.time()) < 5,
            "children": [c.pid for c in children],
            "by_process": [[s.pid, s.smUtil, s.memUtil] for s in by_process],
            "newer": [[s.pid, s.smUtil, s.memUtil] for s in newer],
            "future": failure(nv.nvmlDeviceGetProcessUtilization, h, 1 << 62),
            "none": [failure(call, h) for call in (
                nv.nvmlDeviceGetEncoderUtilization, nv.nvmlDeviceGetDecoderUtilization,
                nv.nvmlDeviceGetAccountingPids, nv.nvmlGpmQueryDeviceSupport)]
                + [failure(nv.nvmlDeviceGetAccountingStats, h, children[0].pid)]}))
        for c in children:
            c.kill()
        """, "--memory", "8GiB", "--cores", "20", "--name", "own")
    assert shown["idle"] == [0, 0, 6]    # NVML_ERROR_NOT_FOUND
    assert 80 <= shown["rates"][0] <= 100
    used = 2 * CONTEXT + GIB
    assert shown["rates"][1] == used * 100 // (8 * GIB)
    assert shown["kind"] == 1 and shown["fresh"]
    assert shown["samples"] == [shown["rates"][0]]
    assert shown["memory_samples"] == [shown["rates"][1]]
    for rows in (shown["by_process"], shown["newer"]):
        assert sorted(row[0] for row in rows) == sorted(shown["children"])
        assert abs(sum(row[1] for row in rows) - shown["rates"][0]) <= 7
        assert min(row[1] for row in rows) >= 25
    assert shown["future"] == 6
    assert shown["none"] == [3] * 5      # NVML_ERROR_NOT_SUPPORTED


LISTED = """
    start()
    child, = start_loads([])
    h = nv.nvmlDeviceGetHandleByIndex(0)
    listed = lambda: sorted(p.pid for p in nv.nvmlDeviceGetComputeRunningProcesses(h))
    print(json.dumps([os.getpid(), child.pid, listed()]), flush=True)
"""


def test_pids_are_those_of_the_pid_namespace(machine, python, neighbour):
    """The tenant's pid namespace is a child of the daemon's, like a container's."""
    unshare = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no pid namespace may be made here")
    result = machine.run("--memory", "4GiB", "--name", "own", "--", *unshare, python, "-c",
                         program(LISTED + "    child.kill()\n"))
    assert result.returncode == 0, result.stderr
    own, child, listed = json.loads(result.stdout)
    assert own == 1 and listed == [own, child]


def test_nvml_works_after_a_restart_of_the_daemon(machine, python):
    """The next daemon has a new shared report, in which both processes have their figures and pids."""
    process = machine.start("--memory", "4GiB", "--cores", "20", "--name", "own", "--", python, "-c",
                            program(LISTED + """
    sys.stdin.readline()
    until = time.monotonic() + 20
    while (busy := nv.nvmlDeviceGetUtilizationRates(h).gpu) < 60 and time.monotonic() < until:
        time.sleep(0.02)
    memory = nv.nvmlDeviceGetMemoryInfo(h)
    print(json.dumps([os.getpid(), child.pid, listed(), memory.used, memory.total, busy]), flush=True)
    child.kill()
"""), stdin=subprocess.PIPE)
    own, child, listed = json.loads(process.stdout.readline())
    assert listed == [own, child]
    machine.kill_daemon()
    machine.wait_for_tenant("own", lambda tenant: len(tenant["processes"]) == 2)
    output, errors = process.communicate("\n", timeout=60)
    assert errors == ""
    *shown, busy = json.loads(output)
    assert shown == [own, child, listed, 2 * CONTEXT, 4 * GIB]
    assert busy >= 60


DEVICES = """
    start()
    def names(i):
        h = nv.nvmlDeviceGetHandleByIndex(i)
        return [nv.nvmlDeviceGetUUID(h), nv.nvmlDeviceGetName(h), nv.nvmlDeviceGetPciInfo(h).busId[4:],
                nv.nvmlDeviceGetSerial(h)]
    def by_bytes(uuid):
        return nv.nvmlDeviceGetHandleByUUIDV(bytes.fromhex(uuid.replace("-", "")[3:]), 2)
    def found(uuid, pci, serial):
        calls = [(nv.nvmlDeviceGetHandleByUUID, uuid), (nv.nvmlDeviceGetHandleByPciBusId, pci),
                 (by_bytes, uuid), (nv.nvmlDeviceGetHandleBySerial, serial),
                 (lambda u: nv.nvmlDeviceGetHandleByUUIDV(u.encode(), 1), uuid)]
        return [failure(call, name) or nv.nvmlDeviceGetIndex(call(name)) for call, name in calls]
    count = nv.nvmlDeviceGetCount()
    text = lambda value: value.rstrip(b"\\0 ").decode()
    print(json.dumps({
        "nvml": [names(i) for i in range(count)],
        "cuda": [[uuid_of(i), text(ok(cu.cuDeviceGetName(96, i))), text(ok(cu.cuDeviceGetPCIBusId(32, i)))]
                 for i in range(ok(cu.cuDeviceGetCount()))],
        "found": [found(*names) for names in json.loads(sys.argv[1])],
        "beyond": failure(nv.nvmlDeviceGetHandleByIndex, count),
        # Without a near GPU, the binding's second call, for an array of 0, is as invalid as on a real GPU.
        "near": [len(nv.nvmlDeviceGetTopologyNearestGpus(nv.nvmlDeviceGetHandleByIndex(0),
                                                         nv.NVML_TOPOLOGY_SYSTEM)) if count > 1 else 0,
                 len(nv.nvmlSystemGetTopologyGpuSet(0))]}))
"""


def test_a_tenant_sees_its_devices_in_its_order(machine2, python):
    physical = []       # [uuid, pci, serial] of the machine's GPUs

    def seen(*options):
        result = machine2.run(*options, "--memory", "1GiB", "--", python, "-c", program(DEVICES),
                              json.dumps(physical))
        assert result.returncode == 0, result.stderr
        shown = json.loads(result.stdout)
        assert [row[:3] for row in shown["nvml"]] == shown["cuda"]
        assert shown["beyond"] == 2      # NVML_ERROR_INVALID_ARGUMENT
        return shown

    both = seen("--gpu", "all")
    assert both["near"] == [1, 2]
    physical = [[row[0], "0000" + row[2], row[3]] for row in both["nvml"]]
    uuids = [row[0] for row in physical]
    assert seen("--gpu", "0,1")["found"] == [[0] * 5, [1] * 5]
    swapped = seen("--gpu", "1,0")
    assert [row[0] for row in swapped["nvml"]] == uuids[::-1]
    assert swapped["found"] == [[1] * 5, [0] * 5]
    second = seen("--gpu", "1")
    assert [row[0] for row in second["nvml"]] == [uuids[1]]
    assert second["found"] == [[6] * 5, [0] * 5]    # not the tenant's: NVML_ERROR_NOT_FOUND
    assert second["near"] == [0, 1]


# Values of CUDA_VISIBLE_DEVICES, and with driver 580 on two H200 the result of cuInit and the devices. A and B are the UUIDs
# of devices 0 and 1. C is B with digits in upper case, and D is B with its prefix in lower case.
VISIBLE = [
    (None, 0, [0, 1]), ("", 100, []), ("0", 0, [0]), ("1", 0, [1]), ("1,0", 0, [1, 0]),
    ("0,0", 101, []), ("0,1,0", 101, []), ("-1", 100, []), ("0,-1", 0, [0]), ("-1,0", 100, []),
    ("5", 100, []), ("0,5,1", 0, [0]), ("x", 100, []), ("0,x,1", 0, [0]), (" 1", 0, [1]),
    ("1 ,0", 0, [1, 0]), ("0, 1", 0, [0, 1]), ("1a", 0, [1]), ("+1", 0, [1]), ("01", 0, [1]),
    ("{B}", 0, [1]), ("{B},{A}", 0, [1, 0]), ("{A},{A}", 101, []), ("{B:.12},{A:.8}", 0, [1, 0]),
    ("GPU-", 100, []), ("GPU", 100, []), ("0,{B}", 0, [0]), ("{B},0", 0, [1]), ("{C}", 0, [1]),
    ("{D}", 100, []), ("MIG-{A}", 100, []), (",0", 100, []), ("0,,1", 0, [0]), ("0,", 0, [0]),
]

SHOW_DEVICES = """
import ctypes, json, sys
cu, nv = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnvidia-ml.so.1")
r = cu.cuInit(0)
n = ctypes.c_int(0)
uuids = []
if r == 0:
    cu.cuDeviceGetCount(ctypes.byref(n))
for i in range(n.value):
    u = (ctypes.c_ubyte * 16)()
    assert cu.cuDeviceGetUuid_v2(ctypes.byref(u), i) == 0
    uuids.append(bytes(u).hex())
assert nv.nvmlInit_v2() == 0
h, text, count, known = ctypes.c_void_p(), ctypes.create_string_buffer(96), ctypes.c_uint(), []
assert nv.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
for i in range(count.value):
    assert nv.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(h)) == 0
    assert nv.nvmlDeviceGetUUID(h, text, 96) == 0
    known.append(text.value.decode())
print(json.dumps([r, uuids, known]))
"""

SHOW_DEVICES_IN_ENVIRONMENTS = """
import json, os, subprocess, sys
for environment in json.loads(sys.argv[2]):
    e = {k: v for k, v in os.environ.items() if not k.startswith("CUDA_")}
    print(subprocess.run([sys.executable, "-c", sys.argv[1]], env={**e, **environment}, check=True,
                         capture_output=True, text=True).stdout, end="")
"""


def devices_in(machine, python, environments):
    """Runs SHOW_DEVICES in a tenant of all devices, in each of the environments; returns [cuInit's result, CUDA's UUIDs, NVML's
    UUIDs] for each."""
    result = machine.run("--gpu", "all", "--memory", "1GiB", "--", python, "-c", SHOW_DEVICES_IN_ENVIRONMENTS, SHOW_DEVICES,
                         json.dumps(environments))
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_cuda_visible_devices_in_a_tenant(machine2, python):
    """The variable affects CUDA only, as without allot: NVML still lists all of the tenant's devices."""
    a, b = devices_in(machine2, python, [{}])[0][2]
    names = {"A": a, "B": b, "C": "GPU-" + b[4:].upper(), "D": "gpu-" + b[4:]}
    environments = [{} if value is None else {"CUDA_VISIBLE_DEVICES": value.format(**names)}
                    for value, _, _ in VISIBLE]
    bare = [uuid[4:].replace("-", "") for uuid in (a, b)]
    for row, (result, uuids, known) in zip(VISIBLE, devices_in(machine2, python, environments)):
        assert (row[0], result, uuids) == (row[0], row[1], [bare[i] for i in row[2]])
        assert known == [a, b]


def test_numbers_count_the_tenants_devices(machine2, python):
    """A script that sets CUDA_VISIBLE_DEVICES to 0 gets the tenant's first device, whichever that is."""
    a, b = devices_in(machine2, python, [{}])[0][2]
    options = ["--memory", "1GiB", "--", python, "-c", SHOW_DEVICES_IN_ENVIRONMENTS, SHOW_DEVICES]
    environments = [{"CUDA_VISIBLE_DEVICES": value} for value in ("0", "1", "0,1", "1,0", "0,0", b)]
    bare = {uuid: uuid[4:].replace("-", "") for uuid in (a, b)}
    for gpus, expected in (("1", [[b], [], [b], [], [], [b]]),
                           ("1,0", [[b], [a], [b, a], [a, b], [], [b]])):
        result = machine2.run("--gpu", gpus, *options, json.dumps(environments))
        assert result.returncode == 0, result.stderr
        seen = [json.loads(line) for line in result.stdout.splitlines()]
        assert [row[1] for row in seen] == [[bare[u] for u in row] for row in expected], gpus
        assert [row[0] for row in seen] == [101 if e["CUDA_VISIBLE_DEVICES"] == "0,0" else
                                            0 if row else 100
                                            for e, row in zip(environments, expected)]


def test_unset_variable_and_foreign_uuids(machine2, python):
    """A program that unsets CUDA_VISIBLE_DEVICES, or names another tenant's device, sees only its tenant's devices,
    in CUDA and in NVML."""
    a, b = devices_in(machine2, python, [{}])[0][2]
    values = {None: [b], b: [b], a: [], f"{b},{a}": [b], f"{a},{b}": [], b[:12]: [b], a[:12]: [], f"GPU-{b[4:].upper()}": [b],
              "GPU-" + "0" * 600: [], f" {b} ,{a}": [b]}
    for value, expected in values.items():
        set_it = "del os.environ[name]" if value is None else f"os.environ[name] = {value!r}"
        program = f'import os\nname = "CUDA_VISIBLE_DEVICES"\n{set_it}\n' + SHOW_DEVICES + """
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
left = libc.getenv(name.encode())
assert (left and left.decode()) == os.environ.get(name)
"""
        result = machine2.run("--gpu", "1", "--memory", "1GiB", "--", python, "-c", program)
        assert result.returncode == 0, result.stderr
        code, uuids, known = json.loads(result.stdout)
        assert (value, code, uuids) == (value, 0 if expected else 100, [u[4:].replace("-", "") for u in expected])
        assert known == [b]


def test_a_process_without_its_tenant_sees_no_device(machine, python):
    """A process that can't connect to its tenant sees none of the machine's GPUs."""
    seen, = devices_in(machine, python, [{"ALLOT_SOCKET": "/" + "x" * 200}])
    assert seen == [802, [], []]    # CUDA_ERROR_SYSTEM_NOT_READY


def test_device_order_is_the_tenants(tmp_path_factory, make_other, python):
    """Without allot CUDA lists the fastest GPU first, unless CUDA_DEVICE_ORDER requests the order of PCI addresses, which NVML
    always has. In a tenant both list its devices in the tenant's order."""
    spec = tmp_path_factory.mktemp("spec") / "cards"
    spec.write_text("[gpu]\npci = 0000:3a:00.0\nsms = 132\n[card]\npci = 0000:18:00.0\nsms = 66\n"
                    "[gpu]\npci = 0000:5d:00.0\nsms = 132\n")
    machine = make_other(str(spec))
    orders = [{}, {"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
              {"CUDA_VISIBLE_DEVICES": "0"},
              {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "0"}]
    seen = devices_in(machine, python, orders)
    known = seen[0][2]          # in the order of PCI addresses
    # Numbers count the tenant's devices in NVML's order, whatever CUDA's own order would be.
    order = [[[u[4:].replace("-", "") for u in known].index(uuid) for uuid in row[1]] for row in seen]
    assert order == [[0, 1, 2], [0, 1, 2], [0, 1, 2], [0], [0]]
    assert all(row[2] == known for row in seen)


@pytest.fixture
def make_other(tmp_path_factory):
    machines = []

    def make(spec):
        machines.append(make_machine(tmp_path_factory, spec))
        return machines[-1]

    yield make
    for machine in machines:
        machine.clean()


def test_nvitop_shows_the_tenant(machine, python, neighbour):
    pytest.importorskip("nvitop")
    shown = run_json(machine, python, """
        from nvitop import CudaDevice, Device
        children = start_loads([], ["--mib", "512"])
        [device] = Device.all()
        # While other tests take the processor, the loads may not have all of the tenant's time at first.
        deadline = time.monotonic() + 30
        while (shot := device.as_snapshot()).gpu_utilization < 60 and time.monotonic() < deadline:
            time.sleep(0.2)
        processes = device.processes()
        for process in processes.values():
            process.update_gpu_status()
        once = subprocess.run([sys.executable, "-m", "nvitop", "-1", "--ascii"], text=True,
                              capture_output=True, env={**os.environ, "COLUMNS": "120"})
        print(json.dumps({
            "children": [c.pid for c in children], "total": shot.memory_total, "used": shot.memory_used,
            "gpu": shot.gpu_utilization, "cuda": [d.uuid() for d in CudaDevice.all()],
            "uuid": device.uuid(),
            "processes": {p.pid: p.gpu_memory() for p in processes.values()},
            "once": once.stdout, "errors": once.stderr}))
        for c in children:
            c.kill()
        """, "--memory", "4GiB", "--cores", "20", "--name", "own")
    held = [CONTEXT, CONTEXT + (512 << 20)]
    assert shown["total"] == 4 * GIB and shown["used"] == sum(held)
    assert shown["processes"] == {str(pid): bytes_ for pid, bytes_ in zip(shown["children"], held)}
    assert shown["gpu"] >= 60 and shown["cuda"] == [shown["uuid"]]
    assert shown["errors"] == ""
    assert re.search(rf"{sum(held) >> 20}MiB / 4096MiB", shown["once"]), shown["once"]
    table = shown["once"].split("Processes:")[1]
    assert re.findall(r"^\| +0 +(\d+) C", table, re.MULTILINE) == list(map(str, shown["children"]))


NVTOP = """
    (child,) = start_loads([])
    time.sleep(2)
    print(child.pid, flush=True)
    subprocess.run(["nvtop", "-p", "-C"])
"""


def read_screen(command, environment, seconds):
    """The bytes that a program draws within `seconds` on a terminal of 120 by 40, decoded."""
    terminal, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    process = subprocess.Popen(command, stdin=other, stdout=other, stderr=other,
                               env=environment, start_new_session=True)
    os.close(other)
    drawn = b""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                drawn += os.read(terminal, 65536)
            except OSError:
                break
    os.write(terminal, b"q")
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.terminate()
        process.wait()
    os.close(terminal)
    return drawn.decode(errors="replace")


def test_nvtop_shows_the_tenant(machine, python, neighbour, tmp_path):
    """nvtop shows the quota as the GPU's memory, one process, and the GPU as busy as its tenant."""
    if not shutil.which("nvtop"):
        pytest.skip("no nvtop here (Debian 12 has it in contrib)")
    command = [BUILD / "allot", "run", *machine.sim, "--memory", "4GiB", "--cores", "20", "--name",
               "own", "--", python, "-c", program(NVTOP)]
    environment = {**machine.environment, "TERM": "xterm", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    drawn = read_screen(command, environment, 9)
    text = re.sub(r"\x1b(\[[0-9;?]*[A-Za-z]|\(B|[=>])", " ", drawn)
    pid = re.match(r"\s*(\d+)", text)[1]
    assert "NVIDIA H200" in text
    assert re.search(r"0\.506Gi/4\.000Gi", text), text
    rows = re.findall(r"(\d+) +\w+ +0 +Compute +(\d+)% +(\d+)MiB +(\d+)%", text)
    assert rows and {row[0] for row in rows} == {pid}, text
    assert max(int(row[1]) for row in rows) >= 60, rows
    *_, mib, of_memory = rows[-1]
    assert mib == "518" and of_memory in ("12", "13"), rows
