"""New mount and PID namespaces for a test's programs that keep state at fixed paths, so that they do not touch the machine's
state. All processes in the namespaces end with them, also background processes."""

import os
import signal
import subprocess

from machines import read_of_processes

# The kernel settings that a kubelet would change (its container manager, setupKernelTunables). In the sandbox these files
# already have the values that it wants, so it writes nothing.
TUNABLES = {"vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10, "kernel/panic_on_oops": 1,
            "kernel/keys/root_maxkeys": 1000000, "kernel/keys/root_maxbytes": 25000000}

# The first process of the namespaces: makes the mounts, and reaps orphans, which become its children.
FIRST = """
set -e
for directory in /var/lib /var/log /run; do
	mount -t tmpfs -o mode=755 none $directory
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


class Sandbox:
    """`kubelet_dir` is mounted as /var/lib/kubelet in the sandbox; outside it is visible under its own path."""

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
            raise RuntimeError(f"can't make mount and PID namespaces: {self.process.communicate()[1].strip()}")
        self.first = children(self.process.pid)[0]

    def within(self, *command):
        """The command line that runs `command` in the sandbox, as a child process of the one that is started."""
        return ["nsenter", "--target", str(self.first), "--mount", "--pid", "--wd=/", "--", *map(str, command)]

    def close(self):
        """Kills all processes in it by killing its first process."""
        os.kill(self.first, signal.SIGKILL)
        self.process.communicate(timeout=60)


def pid_within(process):
    """The pid of the program that a process of Sandbox.within() runs; None before it has started."""
    found = children(process.pid)
    return found[0] if found else None
