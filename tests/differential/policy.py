"""Where a tenant is told or given something else than without allot, on purpose. A difference that no
row explains is a fault.

A row: a regular expression for the function, what may differ, and why. What may differ is

    OUTPUTS             what is written, where both results are the same
    a pair              (plain result, tenant's result), where None is any; where one of the two is a success, all
                        that follows may differ too

A fourth, where there is one, is a regular expression of its arguments. No row explains a call that ends the
process in a tenant alone.
"""

import re

OUTPUTS = "outputs"
OUT_OF_MEMORY, NOT_READY, ILLEGAL_ADDRESS, NOT_SUPPORTED = 2, 600, 700, 801
NVML_NOT_SUPPORTED, NVML_INSUFFICIENT_SIZE = 3, 7
HUGE = r"0x([48]0{7,15}|f{8,16})|\((2|4|5|6)\)|\{[^}]*0x[0-9a-f]{8,}"

ROWS = [
    (r"cuMemGetInfo|cuDeviceTotalMem|nvmlDeviceGetMemoryInfo", OUTPUTS,
     "the tenant's quota is its GPU's size, and what it uses is what it is charged"),
    (r"nvmlDeviceGet(Compute|Graphics|MPSCompute)RunningProcesses|nvmlDeviceGetRunningProcessDetailList"
     r"|nvmlDeviceGetProcess(es)?Utilization", OUTPUTS,
     "a tenant is shown its own processes, with the memory that they are charged"),
    (r"nvmlDeviceGetUtilizationRates", OUTPUTS, "a tenant's utilization is what it used of its share"),
    (r"nvmlDeviceGet(Samples|ProcessUtilization|ProcessesUtilizationInfo)", (None, None),
     "a tenant's utilization is what it used of its share; whether there is a sample of it yet depends on the moment"),
    (r"nvmlDeviceGet(UtilizationRates|Samples|PowerUsage|Temperature|ClockInfo|PcieThroughput"
     r"|PerformanceState|FieldValues|TotalEnergyConsumption)$", OUTPUTS, "it is measured: every answer is another"),
    (r"cu(StreamQuery|EventQuery|EventElapsedTime)", (NOT_READY, 0), "whether work is done depends on the moment"),
    (r"cu(StreamQuery|EventQuery|EventElapsedTime)", (0, NOT_READY), "whether work is done depends on the moment"),
    (r"cuEventElapsedTime|cuStreamGetId|cuCtxGetId", OUTPUTS, "times, and numbers in the order of what the library makes too"),
    (r"cuMem(Pool)?ExportToShareableHandle|cuMemGetHandleForAddressRange", OUTPUTS, "a descriptor's number"),
    (r"cuIpcGet(Mem|Event)Handle|cuMemPoolExportPointer", OUTPUTS, "it names the process"),
    (r"nvmlDeviceGet(AccountingStats|AccountingPids|(En|De)coderUtilization|JpgUtilization|OfaUtilization"
     r"|EncoderStats|EncoderSessions|FBCStats|FBCSessions|DynamicPstatesInfo)|nvmlGpm", (None, NVML_NOT_SUPPORTED),
     "what only the whole GPU has is not told to a part of it"),
    (r"cuMem.*(Alloc|Host(Register|Alloc))|cu(Array|Array3D|MipmappedArray|Mem)Create", (None, OUT_OF_MEMORY),
     "a size that no quota has is refused before the driver looks at other arguments", HUGE),
    (r"cuCtxSetLimit", (None, OUT_OF_MEMORY),
     "a size that no quota has is refused before the driver looks at other arguments", HUGE),
    (r"cuCtxAttach|cuVDPAUCtxCreate|cuStreamBeginCaptureToCig|cuMemMapArrayAsync|cuLogicalEndpoint",
     (None, NOT_SUPPORTED), "refused in a tenant: abi/driver_decisions.h says why of each"),
]


# Of a real GPU alone.
REAL_ROWS = [
    (r"nvmlDeviceGet((Compute|Graphics|MPSCompute)RunningProcesses|RunningProcessDetailList)",
     (NVML_INSUFFICIENT_SIZE, None),
     "a tenant is shown its own processes: the other's may be more than there is room for"),
    (r"nvmlDeviceGet", (0, NVML_INSUFFICIENT_SIZE),
     "a handle of before a fork and a new nvmlInit, whose UUID NVML does not tell any more, is refused in a tenant"),
    (r"cu", (None, ILLEGAL_ADDRESS), "whether a kernel's bad access is known yet depends on the moment"),
    (r"cu", (ILLEGAL_ADDRESS, None), "whether a kernel's bad access is known yet depends on the moment"),
    (r"cuMemcpy", OUTPUTS, "memory that the program has not written holds anything"),
    (r"nvmlDeviceGet(BAR1MemoryInfo|TotalEccErrors|CurrPcieLink)", OUTPUTS, "it is measured: every answer is another"),
]


class Policy:
    def __init__(self, is_real):
        self.rows = [(re.compile(pattern), what, why, re.compile(*arguments or [""]))
                     for pattern, what, why, *arguments in ROWS + (REAL_ROWS if is_real else [])]

    def explain(self, plain, ours):
        """(why, whether what follows may differ too), or None. Of two calls of one function with the same
        arguments."""
        for pattern, what, why, arguments in self.rows:
            if not pattern.match(plain.function) or not arguments.search(plain.arguments):
                continue
            if what == OUTPUTS and plain.result == ours.result:
                return why, False
            if isinstance(what, tuple) and what[0] in (None, plain.result) and what[1] in (None, ours.result):
                return why, (plain.result == 0) != (ours.result == 0)
        return None
