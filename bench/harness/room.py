"""Makes the GPU's memory smaller for benches of swapping. If host memory is too small for the swap arenas of tenants that use
all GPU memory, a process outside of allot occupies a part of it."""

from .job import Failed
from .load import Kernel

MIB = 1 << 20
HOST_PART = 0.48            # part of host memory used for all arenas; the daemon allows half of it (swap_arena)
FREE_PART = 0.70            # part of the available host memory used for all arenas
KERNEL = Kernel(1000, 8192)


def arenas_mib():
    """The host memory for all arenas together."""
    with open("/proc/meminfo", encoding="ascii") as file:
        host = {line.split(":")[0]: int(line.split()[1]) // 1024 for line in file}
    return int(min(HOST_PART * host["MemTotal"], FREE_PART * host["MemAvailable"]))


class Room:
    """Makes the GPU memory so small that `wanted` times its size fits into arenas on the host, and at most most_mib."""

    def __init__(self, bench, wanted, most_mib=None):
        total = bench.machine.device()["memory_bytes"] // MIB
        self.mib = min(total, most_mib or total, int(arenas_mib() / wanted))
        if self.mib < total:
            command = bench.loads.command(KERNEL, "--burst", "1", "--period-ms", "900000", "--seconds",
                                          "3600", "--mib", str(total - self.mib))
            if bench.machine.native("occupied", command).wait_line(0, 120) is None:
                raise Failed("the process that occupies the other GPU memory did not start")
