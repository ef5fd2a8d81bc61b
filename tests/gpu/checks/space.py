"""Tenants that run on the GPU at the same time under the driver's MPS (--sharing space). Three tenants of a group run at once,
each within its quota. allot notices when an MPS client or server is killed, and the next tenant starts without help. At the
end no MPS process is left."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

from harness.job import Failed
from harness.load import Kernel, Loads

from .waiting import settled

KERNEL = Kernel(1000, 40)
KEEP_S = 90
REPORTS = 6             # reports, each of half a second
NOTICE_S = 1.5          # the daemon may take a second; the rest is for asking it
START_S = 60
STARTS_AT_ONCE = 4
TERMS = ["--sharing", "space", "--memory", "8GiB"]
ROOT_ONLY_UID = 65534


def load(machine, *options):
    """A load of kernels that use a third of the SMs; their cost was measured natively on the idle GPU."""
    if not hasattr(machine, "space_loads"):
        machine.space_loads = Loads(machine)
    return machine.space_loads.command(KERNEL, "--report-every", "0.5", *options)


def mps_processes():
    """The pids of all MPS control daemons and servers."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            text = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace")
        except OSError:
            continue
        if "(nvidia-cuda-mps" in text and ") Z " not in text:
            found.add(int(pid))
    return found


def record_of(machine):
    """The group's file in the daemon's run directory."""
    for path in pathlib.Path(machine.run_dir).rglob("mps/*.json"):
        return path, json.loads(path.read_text())
    raise Failed("the daemon has no group")


def servers_of(control):
    return [int(pid) for task in pathlib.Path(f"/proc/{control}/task").glob("*/children")
            for pid in task.read_text().split()]


def tenants(machine):
    return {tenant["name"]: tenant for tenant in machine.ps()["tenants"]}


def shares(jobs):
    """The work of each job in its last REPORTS reports, in percent of a job alone; jobs with fewer reports are left out."""
    found = []
    for job in jobs:
        reports = [event for _, event in job.json() if "t_s" in event][-REPORTS - 1:]
        if len(reports) > REPORTS:
            done_s = sum(report["work_s"] for report in reports[1:])
            found.append(100 * done_s / (reports[-1]["t_s"] - reports[0]["t_s"]))
    return found


def start(machine, name, *options):
    return machine.tenant(name, load(machine, "--seconds", str(KEEP_S), *options), TERMS)


def check_together(machine, tally):
    """If the three tenants only took turns, together they would do the work of one alone."""
    jobs = [start(machine, f"space-{i + 1}") for i in range(3)]
    if not settled(lambda: len(shares(jobs)) == 3):
        raise Failed(f"not all of them work{jobs[0].tail()}")
    time.sleep(4)
    got = shares(jobs)
    tally.verdict(sum(got) > 150, "three tenants of a group work at the same time",
                  ", ".join(f"{share:.0f} %" for share in got) + " of what each does alone")
    now = tenants(machine)
    groups = {now[f"space-{i + 1}"]["space"]["group"] for i in range(3)}
    tally.verdict(len(groups) == 1, "they are one group", ", ".join(groups))
    return jobs


def check_quota(machine, tally):
    job = machine.tenant("space-over", load(machine, "--seconds", "1", "--mib", "9000"), TERMS)
    status = job.wait(START_S)
    tally.verdict(status not in (0, 125), "more than the quota is refused", f"status {status}{job.tail()}")
    held = tenants(machine)["space-1"]["devices"][0]
    tally.verdict(0 < held["memory_used_bytes"] <= held["memory_quota_bytes"], "what one holds is in its ledger",
                  f"{held['memory_used_bytes'] >> 20} MiB of {held['memory_quota_bytes'] >> 20}")


def check_killed_client(machine, tally, jobs):
    """Kills a client while its kernels run; the others must go on."""
    victim = tenants(machine)["space-1"]["processes"][0]["pid"]
    before = [len(job.json()) for job in jobs[1:]]
    os.kill(victim, signal.SIGKILL)
    went_on = settled(lambda: all(len(job.json()) > n + 3 for job, n in zip(jobs[1:], before)), 15)
    faults = [tenants(machine)[f"space-{i}"]["space"]["fault"] for i in (2, 3)]
    tally.verdict(went_on, "others go on after a client was killed", f"told: {faults}")


def kill_mps(machine, who):
    """Kills the group's MPS server or its control daemon. Returns (its pid, time of the kill)."""
    if not settled(lambda: tenants(machine)["space-stays"]["space"]["state"] == "ready"):
        raise Failed("the group has no MPS")
    _, record = record_of(machine)
    server, = servers_of(record["pid"])
    victim = server if who == "server" else record["pid"]
    begin = time.monotonic()
    os.kill(victim, signal.SIGKILL)
    return victim, begin


def is_told(machine, pid):
    return f"(pid {pid})" in (tenants(machine)["space-stays"]["space"]["fault"] or "")


def check_killed_mps(machine, tally, who):
    """A tenant that outlives the killed MPS process gets the cause in its `fault`; the next tenant gets a new MPS process."""
    victim, begin = kill_mps(machine, who)
    noticed = settled(lambda: is_told(machine, victim), 10)
    after_s = time.monotonic() - begin
    tally.verdict(noticed and after_s < NOTICE_S, f"a killed {who} is noticed and named",
                  f"{after_s:.2f} s: {tenants(machine)['space-stays']['space']['fault']}")
    again = machine.tenant(f"space-after-{who.split()[0]}", load(machine, "--seconds", "1"), TERMS)
    status = again.wait(START_S)
    tally.verdict(status == 0, f"the next start after a killed {who} works without help",
                  f"{time.monotonic() - begin:.2f} s after it, with a second of work{again.tail()}")


def check_start_at_once(machine, tally):
    """Starts a tenant right after a kill, before the daemon may have noticed; several times, with different delays."""
    for i in range(STARTS_AT_ONCE):
        kill_mps(machine, "server")
        time.sleep(0.05 * i)
        again = machine.tenant(f"space-at-once-{i}", load(machine, "--seconds", "0.2"), TERMS)
        if again.wait(START_S) != 0:
            tally.verdict(False, "starts at once after a server's end work", f"{0.05 * i:.2f} s after it{again.tail()}")
            return
    tally.verdict(True, "starts at once after a server's end work", f"{STARTS_AT_ONCE} of them")


def check_ends_of_mps(machine, tally):
    machine.tenant("space-stays", ["/bin/sleep", "300"], TERMS)
    if not settled(lambda: "space-stays" in tenants(machine)):
        raise Failed("a tenant that sleeps did not start")
    check_killed_mps(machine, tally, "server")
    check_killed_mps(machine, tally, "control daemon")
    check_start_at_once(machine, tally)


def check_unprivileged(machine, tally):
    name = "a user without rights has a group of his own"
    if os.geteuid() != 0:
        tally.skip(name, "needs root, to be another user")
        return
    directory = tempfile.mkdtemp(prefix="allot-gpu-", dir="/tmp")
    os.chown(directory, ROOT_ONLY_UID, ROOT_ONLY_UID)
    environment = dict(machine.tenant_environment, ALLOT_RUN_DIR=directory, HOME=directory)
    sim = ["--sim", machine.sim] if machine.sim else []
    try:
        with machine.without_daemon():
            done = subprocess.run([machine.allot, "run", *sim, *TERMS, "--", *load(machine, "--seconds", "1")],
                                  env=environment, capture_output=True, text=True, timeout=START_S, check=False,
                                  user=ROOT_ONLY_UID, group=ROOT_ONLY_UID, extra_groups=[])
            settled(lambda: not list(pathlib.Path(directory).rglob("allotd.sock")), 20)
        tally.verdict(done.returncode == 0, name, done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def check(machine, tally, options):
    before = mps_processes()
    load(machine)
    refused = machine.refuses("--sharing", "space")
    if refused:
        tally.skip("--sharing space", refused)
        return
    jobs = check_together(machine, tally)
    check_quota(machine, tally)
    check_killed_client(machine, tally, jobs)
    check_ends_of_mps(machine, tally)
    machine.stop_all()
    check_unprivileged(machine, tally)
    left = settled(lambda: not mps_processes() - before, 20)
    tally.verdict(left, "no process of MPS is left", ", ".join(map(str, mps_processes() - before)))
