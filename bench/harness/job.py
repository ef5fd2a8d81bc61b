"""A child process. Its output is read as it arrives, and each line gets the time of its arrival."""

import json
import os
import signal
import subprocess
import threading
import time


class Failed(Exception):
    """A program failed or did not end; the text says which program and how."""


class Job:
    def __init__(self, name, command, environment, stdin=False):
        self.name = name
        self.command = command
        self.lines = []     # (arrival as Unix time, text)
        self.errors = []
        self.arrived = threading.Condition()
        # Starts in a new session, so that kill() reaches both `allot run` and its command.
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
            start_new_session=True)
        self.readers = [threading.Thread(target=self._read_output, daemon=True),
                        threading.Thread(target=self._read_errors, daemon=True)]
        for reader in self.readers:
            reader.start()

    def _read_output(self):
        for line in self.process.stdout:
            with self.arrived:
                self.lines.append((time.time(), line.rstrip("\n")))
                self.arrived.notify_all()
        with self.arrived:
            self.arrived.notify_all()

    def _read_errors(self):
        for line in self.process.stderr:
            self.errors.append(line.rstrip("\n"))

    def text(self):
        return [line for _, line in self.lines]

    def json(self):
        """The JSON lines of the output: [(arrival, object)]."""
        return [(at, json.loads(line)) for at, line in list(self.lines) if line.startswith("{")]

    def wait_line(self, count, timeout_s):
        """Waits until the output has more than `count` lines. Returns the line after these, or None if the output ended."""
        deadline = time.monotonic() + timeout_s
        with self.arrived:
            while len(self.lines) <= count:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise Failed(f"{self.name}: no output for {timeout_s:g} s{self.tail()}")
                if self.process.poll() is not None and not self.readers[0].is_alive():
                    return None
                self.arrived.wait(min(left, 0.2))
            return self.lines[count][1]

    def say(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def tail(self):
        last = [line for line in self.errors if line.strip()][-3:]
        return ": " + " | ".join(last) if last else ""

    def wait(self, timeout_s):
        """Returns the exit status. A process that does not end in time is killed, and Failed is raised."""
        try:
            status = self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failed(f"{self.name}: did not end within {timeout_s:g} s{self.tail()}") from None
        for reader in self.readers:
            reader.join(5)
        return status

    def check(self, timeout_s):
        """Waits, and raises Failed unless the process ended with status 0."""
        status = self.wait(timeout_s)
        if status != 0:
            raise Failed(f"{self.name}: ended with status {status}{self.tail()}")

    def stop(self, timeout_s=10):
        """Ends the process with SIGTERM, or SIGKILL if that does not suffice. Ignores its status."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                pass
        self.kill()

    def kill(self):
        """Kills all processes of the session that are left, also stopped ones."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self.process.wait()

    def pids(self):
        """The pids of the process and of all its living descendants."""
        parents = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    with open(f"/proc/{entry}/stat", encoding="ascii", errors="replace") as file:
                        parents[int(entry)] = int(file.read().rpartition(")")[2].split()[1])
                except (OSError, ValueError, IndexError):
                    pass
        found = {self.process.pid}
        while True:
            more = {pid for pid, parent in parents.items() if parent in found} - found
            if not more:
                return found
            found |= more
