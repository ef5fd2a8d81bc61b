"""A Slurm cluster with this machine as its only node, on loopback: slurmctld, slurmd and munged with the test's own keys, ports
and folders. Installing their packages would start daemons, so scripts/test only unpacks them to build/slurm. Without that
folder, installed programs are used."""

import os
import pathlib
import re
import secrets
import socket
import subprocess

from machines import ROOT, wait_until
from processes import end_process

UNPACKED = ROOT / "build/slurm"
# Debian's programs have other names, such as slurmctld-wlm. Slurm depends on the names: with another name, slurmctld reads
# no Gres of its nodes. So these links have the right names.
LINKED = ("slurmctld", "slurmd", "slurmstepd")


def find(name):
    """Returns the path of a program, or None."""
    for folder in (UNPACKED / "usr/sbin", UNPACKED / "usr/bin", "/usr/sbin", "/usr/bin"):
        for path in (pathlib.Path(folder, name), pathlib.Path(folder, f"{name}-wlm")):
            if path.exists():
                return path
    return None


def libraries():
    """Returns the folder of Slurm's own library and plugins, or None."""
    return next((path.parent for root in (UNPACKED / "usr/lib", pathlib.Path("/usr/lib"))
                 for path in root.glob("*/slurm*/libslurmfull.so")), None)


def why_not():
    if os.geteuid() != 0:
        return "needs root"
    missing = [name for name in (*LINKED, "srun", "munged") if not find(name)]
    return f"no {', no '.join(missing)}" if missing else None if libraries() else "no libslurmfull.so"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Slurm:
    """A cluster, as a context manager. `slurm_conf`, `gres_conf`: more lines for these files. Jobs search for programs in `bin`
    first."""

    def __init__(self, directory, slurm_conf, gres_conf):
        self.directory = directory
        for name in ("bin", "spool", "state", "run", "programs"):
            (directory / name).mkdir(parents=True, mode=0o755)
        for name in LINKED:
            (directory / "programs" / name).symlink_to(find(name))
        self.host = socket.gethostname().partition(".")[0]
        plugins = libraries()
        self.environment = {"PATH": f"{directory}/bin:{find('srun').parent}:{os.environ['PATH']}", "HOME": str(directory),
                            "LD_LIBRARY_PATH": f"{plugins}:{plugins.parent}", "SLURM_CONF": str(directory / "slurm.conf")}
        (directory / "munge.key").write_bytes(secrets.token_bytes(128))
        (directory / "munge.key").chmod(0o400)
        (directory / "gres.conf").write_text(gres_conf)
        (directory / "slurm.conf").write_text(f"""ClusterName=test
SlurmctldHost={self.host}(127.0.0.1)
SlurmUser=root
AuthInfo=socket={directory}/run/munge.sock
PluginDir={plugins}
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
SlurmctldPidFile={directory}/run/slurmctld.pid
SlurmdPidFile={directory}/run/slurmd.pid
SlurmdSpoolDir={directory}/spool
StateSaveLocation={directory}/state
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectTypeParameters=CR_Core
MailProg=/bin/true
MpiDefault=none
PartitionName=all Nodes=ALL Default=YES
{slurm_conf}
""")
        # The test must not use the machine's cgroups. Versions before 23.11 don't use them here, and don't know this setting.
        if self.version() >= (23, 11):
            (directory / "cgroup.conf").write_text("CgroupPlugin=disabled\n")
        self.processes = []

    def version(self):
        text = subprocess.run([self.directory / "programs/slurmd", "-V"], env=self.environment, capture_output=True, text=True,
                              check=True).stdout
        return tuple(map(int, re.search(r"(\d+)\.(\d+)", text).groups()))

    def serve(self, *command):
        with open(self.directory / "log", "a") as log:
            self.processes.append(subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                   env=self.environment))

    def said(self):
        """Returns the end of the servers' log."""
        return (self.directory / "log").read_text()[-3000:]

    def is_ready(self):
        assert all(process.poll() is None for process in self.processes), self.said()
        done = subprocess.run([find("sinfo"), "-h", "-o", "%T"], env=self.environment, capture_output=True, text=True, check=False,
                              timeout=60)
        return done.stdout.strip() == "idle"

    def start(self):
        run, programs = self.directory / "run", self.directory / "programs"
        # A test's folder is below /tmp, which other users may write to. munged accepts that only with --force.
        self.serve(find("munged"), "--foreground", "--force", f"--socket={run}/munge.sock", f"--key-file={self.directory}/munge.key",
                   f"--pid-file={run}/munge.pid", f"--log-file={self.directory}/munge.log", f"--seed-file={run}/seed")
        wait_until((run / "munge.sock").exists, what="munged")
        self.serve(programs / "slurmctld", "-D")
        self.serve(programs / "slurmd", "-D", "-d", programs / "slurmstepd")
        wait_until(self.is_ready, seconds=60, what="an idle node")

    def run(self, line, **more):
        """Starts a job's command line, as a user types it in a shell, in the background."""
        return subprocess.Popen(["sh", "-c", f"exec {line}"], env=self.environment, cwd=self.directory, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        for process in reversed(self.processes):
            end_process(process)
