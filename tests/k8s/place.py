"""New mount and pid namespaces for a test's programs that keep state at fixed paths, so that they do not touch the machine's
state. All processes in them end with them, also those in the background."""

import os
import signal
import subprocess

from machines import read_of_processes

# What a kubelet would change on the machine (its container manager, setupKernelTunables): in the place these
# files are there already with what it wants, and it writes nothing.
TUNABLES = {"vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10, "kernel/panic_on_oops": 1,
            "kernel/keys/root_maxkeys": 1000000, "kernel/keys/root_maxbytes": 25000000}

# The first process: it has the mounts made, and waits for the orphans that become its children.
FIRST = """
set -e
for place in /var/lib /var/log /run; do
	mount -t tmpfs -o mode=755 none $place
done
mkdir /var/lib/kubelet
mount --bind "$1" /var/lib/kubelet
cd "$2"
find . -type f | while read -r name; do
	mount --bind "$name" "/proc/sys/$name"
done
echo ready
exec >/dev/null
while sleep 1; do
	:
done
"""


def children(pid):
    return [child for child, text in read_of_processes("stat") if int(text.rpartition(")")[2].split()[1]) == pid]


class Place:
    """`kubelet_dir` is the kubelet's /var/lib/kubelet; the machine sees it where it is."""

    def __init__(self, directory):
        self.kubelet_dir = directory / "kubelet"
        tunables = directory / "tunables"
        for name, value in TUNABLES.items():
            (tunables / name).parent.mkdir(parents=True, exist_ok=True)
            (tunables / name).write_text(f"{value}\n")
        self.kubelet_dir.mkdir()
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--propagation", "slave",
             "sh", "-c", FIRST, "sh", self.kubelet_dir, tunables],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            self.process.kill()
            raise RuntimeError(f"no mounts and processes of its own: {self.process.communicate()[1].strip()}")
        self.first = children(self.process.pid)[0]

    def within(self, *command):
        """The command that runs it in the place: a child of what is started."""
        return ["nsenter", "--target", str(self.first), "--mount", "--pid", "--wd=/", "--", *map(str, command)]

    def close(self):
        """Kills whatever is left in it; it is gone with its first process."""
        os.kill(self.first, signal.SIGKILL)
        self.process.communicate(timeout=60)


def pid_within(process):
    """Of the program that a process started by Place.within() runs."""
    found = children(process.pid)
    return found[0] if found else None
