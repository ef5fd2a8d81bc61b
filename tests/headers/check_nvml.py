#!/usr/bin/env python3
"""Holds src/abi/nvml_abi.h and nvml_table.h against NVIDIA's nvml.h.

    check_nvml.py INCLUDE_FOLDER

The prototypes of every row that this nvml.h knows, and the layouts of the structures that are read or
written. Prints "ok NAME" or "not ok NAME" with the compiler's words; ends with 1 when one is not.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CC = os.environ.get("CC", "cc")

# The table's rows after NVIDIA's declarations: a prototype that differs is an error.
PROTOTYPES = """
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>
#define ALLOT_ABI_NVML_ABI_H
@missing@
#include "abi/nvml_table.h"
#define HOOKED(symbol, hook, params, args) nvmlReturn_t symbol params;
#define OTHER(symbol, params, ...) nvmlReturn_t symbol params;
NVML_TABLE(HOOKED, HOOKED, OTHER)
NVML_CALLS(OTHER)
"""

# Newer than some header that is tested.
NEWER_TYPES = ("nvmlAccountingStats_v2_t",)

# Structure: its members, as both headers name them.
LAYOUTS = {
    "nvmlMemory_t": "total free used",
    "nvmlMemory_v2_t": "version total reserved free used",
    "nvmlUtilization_t": "gpu memory",
    "nvmlProcessInfo_v1_t": "pid usedGpuMemory",
    "nvmlProcessInfo_t": "pid usedGpuMemory gpuInstanceId computeInstanceId",
    "nvmlProcessDetail_v1_t": "pid usedGpuMemory gpuInstanceId computeInstanceId "
                              "usedGpuCcProtectedMemory",
    "nvmlProcessDetailList_t": "version mode numProcArrayEntries procArray",
    "nvmlProcessUtilizationSample_t": "pid timeStamp smUtil memUtil encUtil decUtil",
    "nvmlProcessUtilizationInfo_v1_t": "timeStamp pid smUtil memUtil encUtil decUtil jpgUtil ofaUtil",
    "nvmlProcessesUtilizationInfo_t": "version processSamplesCount lastSeenTimeStamp procUtilArray",
    "nvmlValue_t": "dVal uiVal ullVal",
    "nvmlSample_t": "timeStamp sampleValue",
    "nvmlDeviceAttributes_t": "multiprocessorCount sharedCopyEngineCount sharedDecoderCount sharedEncoderCount "
                              "sharedJpegCount sharedOfaCount gpuInstanceSliceCount computeInstanceSliceCount memorySizeMB",
    "nvmlUUID_t": "version type value",
    "nvmlPciInfo_t": "busIdLegacy domain bus device pciDeviceId pciSubSystemId busId",
    "nvmlEventData_t": "device eventType eventData gpuInstanceId computeInstanceId",
}
VALUES = """NVML_ERROR_INVALID_ARGUMENT NVML_ERROR_NOT_SUPPORTED NVML_ERROR_NO_PERMISSION
    NVML_ERROR_NOT_FOUND NVML_ERROR_INSUFFICIENT_SIZE NVML_ERROR_FUNCTION_NOT_FOUND
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH NVML_GPU_UTILIZATION_SAMPLES NVML_MEMORY_UTILIZATION_SAMPLES
    NVML_ENC_UTILIZATION_SAMPLES NVML_DEC_UTILIZATION_SAMPLES NVML_JPG_UTILIZATION_SAMPLES
    NVML_OFA_UTILIZATION_SAMPLES NVML_VALUE_TYPE_UNSIGNED_INT nvmlMemory_v2 nvmlProcessDetailList_v1
    nvmlProcessesUtilizationInfo_v1 nvmlUUID_v1 nvmlEventTypeDoubleBitEccError
    nvmlEventTypeXidCriticalError NVML_TOPOLOGY_INTERNAL NVML_TOPOLOGY_SINGLE
    NVML_TOPOLOGY_MULTIPLE NVML_TOPOLOGY_HOSTBRIDGE NVML_TOPOLOGY_NODE NVML_TOPOLOGY_SYSTEM
    NVML_NVLINK_DEVICE_TYPE_GPU NVML_NVLINK_DEVICE_TYPE_SWITCH""".split()


def compile_c(source, *options):
    return subprocess.run([CC, "-x", "c", "-Werror", f"-I{ROOT}/src", *options, "-"], input=source,
                          capture_output=True, text=True, check=False)


def prototypes_differ(include):
    known = (pathlib.Path(include) / "nvml.h").read_text(errors="replace")
    missing = "".join(f"typedef void {name};\n" for name in NEWER_TYPES
                      if not re.search(rf"\b{name}\b", known))
    done = compile_c(PROTOTYPES.replace("@missing@", missing), "-fsyntax-only", "-isystem", include)
    return [line for line in done.stderr.splitlines() if "error:" in line]


def facts(include, *options):
    """What a program that includes that header says of the layouts and values: {fact: number}."""
    lines = [f'P(sizeof({t})) {" ".join(f"P(offsetof({t}, {m}))" for m in members.split())}'
             for t, members in LAYOUTS.items()]
    source = (f'#include <stddef.h>\n#include <stdio.h>\n#include {include}\n'
              '#define P(fact) printf("%s\\t%llu\\n", #fact, (unsigned long long)(fact));\n'
              "int main(void)\n{\n" + "\n".join(lines + [f"P({value})" for value in VALUES]) +
              "\nreturn 0;\n}\n")
    with tempfile.TemporaryDirectory() as scratch:
        program = os.path.join(scratch, "facts")
        done = compile_c(source, *options, "-o", program)
        if done.returncode:
            return [line for line in done.stderr.splitlines() if "error:" in line] or [done.stderr]
        text = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    # A macro is printed as what it stands for: number the lines, not their names.
    return [line.split("\t")[-1] for line in text.splitlines()]


def layouts_differ(include):
    ours, theirs = facts('"abi/nvml_abi.h"'), facts("<nvml.h>", "-isystem", include)
    if len(ours) != len(theirs):
        return ours + theirs
    names = [f"{t}.{m}" for t, members in LAYOUTS.items() for m in ["size", *members.split()]]
    return [f"{name}: {a} here, {b} in nvml.h" for name, a, b in zip(names + VALUES, ours, theirs)
            if a != b]


def main():
    include = sys.argv[1]
    failed = False
    for name, wrong in (("prototypes", prototypes_differ(include)),
                        ("layouts", layouts_differ(include))):
        print(f"{'not ok' if wrong else 'ok'} nvml.h: {name} ({include})")
        for line in wrong:
            print(f"    {line}")
        failed = failed or bool(wrong)
    sys.exit(failed)


main()
