"""A smaller card, for benches of swapping: where the host has no room for the arenas of tenants on the
whole card, a process outside of allot holds the rest of it."""

from .job import Failed
from .load import Kernel

MIB = 1 << 20
HOST_PART = 0.48            # of the host's memory, for all arenas: they may have half of it (swap_arena)
FREE_PART = 0.70            # of what of it is available
KERNEL = Kernel(1000, 8192)


def arenas_mib():
    """The host memory for all arenas together."""
    with open("/proc/meminfo", encoding="ascii") as file:
        host = {line.split(":")[0]: int(line.split()[1]) // 1024 for line in file}
    return int(min(HOST_PART * host["MemTotal"], FREE_PART * host["MemAvailable"]))


class Room:
    """The card, or as much of it, most_mib at most, as `wanted` times its size fits into arenas on the host."""

    def __init__(self, bench, wanted, most_mib=None):
        total = bench.machine.ps()["devices"][0]["memory_bytes"] // MIB
        self.mib = min(total, most_mib or total, int(arenas_mib() / wanted))
        if self.mib < total:
            command = bench.loads.command(KERNEL, "--burst", "1", "--period-ms", "900000", "--seconds",
                                          "3600", "--mib", str(total - self.mib))
            if bench.machine.native("rest", command).wait_line(0, 120) is None:
                raise Failed("the process that holds the rest of the card did not begin")
