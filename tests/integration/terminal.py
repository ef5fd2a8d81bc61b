"""Runs `allot top` in a new pseudoterminal, whose screen a terminal emulator library reads."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import threading

import pytest

from machines import BUILD, wait_until

pyte = pytest.importorskip("pyte", reason="the terminal emulator of these tests is not installed")


class Terminal:
    """`allot top` in a terminal. A thread reads its output all the time, as a real terminal does."""

    def __init__(self, machine, *options, columns=80, lines=24, environment=None):
        self.master, self.slave = pty.openpty()
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.lock = threading.Lock()
        self.set_size(columns, lines)
        self.before = termios.tcgetattr(self.slave)
        # A terminal type whose sequences the emulator knows: it does not know REP (repeat the last character).
        variables = {**machine.environment, "TERM": "screen-256color", "LC_ALL": "C.UTF-8",
                     "NO_COLOR": "", **(environment or {})}
        self.process = subprocess.Popen(
            [BUILD / "allot", "top", *machine.sim, "--interval", "0.2", *options], stdin=self.slave,
            stdout=self.slave, stderr=self.slave, env=variables, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.is_over = threading.Event()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        while not self.is_over.is_set():
            if not select.select([self.master], [], [], 0.05)[0]:
                continue
            data = os.read(self.master, 65536)
            with self.lock:
                self.raw += data
                self.stream.feed(data)

    def set_size(self, columns, lines):
        """Changes the terminal's size, on which the kernel sends SIGWINCH to the program."""
        with self.lock:
            self.screen.resize(lines, columns)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def lines(self):
        with self.lock:
            return [line.rstrip() for line in self.screen.display]

    def press(self, keys):
        os.write(self.master, keys.encode())

    def wait_for(self, condition, what):
        """Waits until condition(lines) is true; returns the lines."""
        try:
            return wait_until(lambda: condition(lines) and lines if (lines := self.lines()) else None,
                              what=what)
        except BaseException:
            print("\n".join(self.lines()))
            raise

    def wait_for_text(self, text):
        return self.wait_for(lambda lines: any(text in line for line in lines), text)

    def order(self):
        """Returns the tenants' names, from top to bottom."""
        lines = self.lines()
        heads = [i for i, line in enumerate(lines) if line.startswith("TENANT ")]
        return [line.split()[0] for line in lines[heads[0] + 1:] if line[:1].isalpha()
                and not line.startswith(("q quit", "sorted", "filter", "done"))] if heads else []

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.is_over.set()
        self.reader.join()
        os.close(self.master)
        os.close(self.slave)
