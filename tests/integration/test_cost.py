"""A tenant's process that uses no GPU must contain allot's library, and nothing else of allot. `bench/run --only start`
measures the time that this costs."""

import os
import pathlib
import signal

from machines import BUILD, processes_of, wait_until


class Process:
    """A process of a tenant, observed from outside."""

    def __init__(self, machine, mark, *command):
        machine.start("--name", "a", "--memory", "1GiB", "--", *command)
        found = wait_until(lambda: [pid for pid, line in processes_of(mark).items()
                                    if line.startswith(command[0] + " ")], 10, mark)
        self.pid = found[0]
        self.proc = pathlib.Path("/proc") / str(self.pid)
        self.machine = machine

    def files(self):
        """Returns the names of the files that are mapped."""
        lines = (self.proc / "maps").read_text().splitlines()
        return {fields[5] for fields in (line.split(None, 5) for line in lines)
                if len(fields) == 6 and not fields[5].startswith("[")}

    def shared(self):
        """Returns the mappings that are shared with other processes, as a tenant's region is, without libc's gconv cache."""
        lines = (self.proc / "maps").read_text().splitlines()
        return [line for line in lines if line.split()[1].endswith("s") and "/gconv/" not in line]

    def threads(self):
        return len(list((self.proc / "task").iterdir()))

    def descriptors(self):
        return {int(path.name) for path in (self.proc / "fd").iterdir()}

    def sockets(self):
        return [link for link in map(os.readlink, (self.proc / "fd").iterdir())
                if link.startswith("socket:")]

    def registered(self):
        return self.machine.wait_for_tenant("a")["processes"]

    def end(self):
        os.kill(self.pid, signal.SIGKILL)


def test_a_process_without_gpu_has_the_library_and_nothing_else(machine):
    process = Process(machine, "sleep 3071", "sleep", "3071")
    library = str(BUILD / "liballot.so")
    ours = wait_until(lambda: {f for f in process.files() if "allot" in f or "memfd" in f}, 10)
    assert {os.path.realpath(f) for f in ours} == {os.path.realpath(library)}
    assert process.threads() == 1
    assert process.shared() == []
    assert process.sockets() == []
    assert process.descriptors() == {0, 1, 2}
    assert process.registered() == []
    process.end()


def test_the_library_is_the_only_additional_mapping(machine):
    """Compared with the same program without allot."""
    inside = machine.run("--memory", "1GiB", "--", "cat", "/proc/self/maps")
    assert inside.returncode == 0, inside.stderr

    def files(text):
        return {os.path.realpath(line.split(None, 5)[5]) for line in text.splitlines()
                if len(line.split(None, 5)) == 6 and not line.split(None, 5)[5].startswith("[")}

    native = files(os.popen("env -u LD_PRELOAD cat /proc/self/maps").read())
    assert files(inside.stdout) - native == {os.path.realpath(BUILD / "liballot.so")}


def test_a_process_with_gpu_has_more(machine):
    """Shows that the checks above would find the additional parts."""
    process = Process(machine, "--kernel-us 997", *machine.load(
        "--kernel-us", "997", "--seconds", "60"))
    wait_until(process.registered, what="its registration")
    wait_until(lambda: process.threads() > 1, what="the helper thread")
    assert process.shared()
    process.end()
