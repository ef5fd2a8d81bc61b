"""nvidia-smi in a tenant, beside another tenant, shows the quota as the card's memory, and only the tenant's own processes and
GPU use. It runs in a new pid namespace, as in a container, because it asks the kernel itself for the list of processes, and
the kernel lists those of the namespace."""

import os
import re
import shutil
import sys

from harness.load import Kernel, Loads

KERNEL = Kernel(1000, 132)
QUOTA_MIB = 4096
CORES = 20
START_S = 120
HERE = os.path.dirname(os.path.abspath(__file__))


def rows_of(text):
    """A list of fields for each CSV line."""
    return [[field.strip() for field in line.split(",")] for line in text.splitlines() if line.strip()]


def check_gpus(tally, said, uuid):
    rows = rows_of(said["gpus"])
    good = len(rows) == 1 and rows[0][:3] == ["0", uuid, str(QUOTA_MIB)] and \
        0 < int(rows[0][3]) <= QUOTA_MIB and int(rows[0][4]) >= 60
    tally.verdict(good, "nvidia-smi --query-gpu: one card, its quota, its use", said["gpus"].strip())
    listed = re.findall(r"UUID: ([^)]*)\)", said["list"])
    tally.verdict(listed == [uuid], "nvidia-smi -L: the tenant's card alone", said["list"].strip())
    return int(rows[0][3]) if good else None


def check_processes(tally, said, uuid, used_mib):
    rows = rows_of(said["processes"])
    good = [(row[0], row[2]) for row in rows] == [(str(said["pid"]), uuid)] and \
        abs(int(rows[0][1]) - (used_mib or 0)) <= 1
    tally.verdict(good, "nvidia-smi --query-compute-apps: its own process, all that is in use",
                  f"{said['processes'].strip()}; in use {used_mib} MiB")
    pids = re.findall(r"^\s+\d+\s+(\d+)\s+C\s+(\d+|-)", said["monitor"], re.MULTILINE)
    tally.verdict([pid for pid, _ in pids] == [str(said["pid"])] and pids[0][1] != "-" and
                  int(pids[0][1]) > 0,
                  "nvidia-smi pmon: its own process alone", f"(pid, sm %): {pids}")


def check_screens(tally, said):
    figures = re.findall(r"(\d+)MiB */ *(\d+)MiB", said["plain"])
    processes = said["plain"].split("Processes:")[-1]
    pids = re.findall(r"^\|\s+0\s+\S+\s+\S+\s+(\d+)\s+C", processes, re.MULTILINE)
    tally.verdict([total for _, total in figures] == [str(QUOTA_MIB)] and pids == [str(said["pid"])],
                  "nvidia-smi: the quota and its own process", f"{figures}, processes {pids}")
    totals = re.findall(r"FB Memory Usage\s+Total\s+: (\d+) MiB", said["memory"])
    tally.verdict(totals == [str(QUOTA_MIB)], "nvidia-smi -q: the quota", f"{totals}")


def check(machine, tally, options):
    why = "it speaks to a real driver alone" if machine.sim else \
        "no nvidia-smi here" if not shutil.which("nvidia-smi") else \
        "a pid namespace needs root" if os.geteuid() else None
    if why:
        tally.skip("nvidia-smi in a tenant", why)
        return
    load = machine.build.program("allot-load")
    # The kernel is calibrated natively on the idle GPU: a capped tenant would measure its own pauses, too.
    busy = Loads(machine).command(KERNEL, "--seconds", "600")
    neighbour = machine.tenant("neighbour", busy,
                               ["--gpu", "0", "--memory", "8GiB", "--cores", "40"])
    if neighbour.wait_line(1, START_S) is None:
        tally.bad("the neighbour", f"status {neighbour.wait(10)}{neighbour.tail()}")
        return
    uuid = machine.ps()["devices"][0]["uuid"]
    job = machine.tenant("card", ["unshare", "--pid", "--fork", "--mount-proc", sys.executable,
                                  os.path.join(HERE, "card_tools.py"), load],
                         ["--gpu", "0", "--memory", f"{QUOTA_MIB}MiB", "--cores", str(CORES)])
    status = job.wait(START_S)
    if status != 0 or not job.json():
        tally.bad("nvidia-smi in a tenant", f"status {status}{job.tail()}")
        return
    said = job.json()[-1][1]
    used_mib = check_gpus(tally, said, uuid)
    check_processes(tally, said, uuid, used_mib)
    check_screens(tally, said)
