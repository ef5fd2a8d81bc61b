"""Runs allotd on simulated GPUs as the node of a test, in the foreground, so that the test gets its log."""

import os
import signal
import subprocess

from machines import BUILD, wait_until


class Daemon:
    def __init__(self, directory, kubeconfig, node, settings="", cards="h200x2", within=(), environment=None,
                 is_private=True, tuning=""):
        """`cards`: the simulated GPUs, as allot-sim's --spec has them. `within`: a command in front of the daemon's.
        `is_private`: run with --private, which needs no root."""
        self.private = ["--private"] if is_private else []
        self.directory = directory
        self.run_dir = directory / "r"
        self.node = node
        self.kubeconfig = kubeconfig
        self.settings = settings
        self.tuning = tuning
        self.cards = cards
        self.within = within
        self.environment = {**os.environ, **(environment or {})}
        self.processes = []

    def start(self):
        self.run_dir.mkdir(mode=0o700, exist_ok=True)
        sim_socket = self.run_dir / "sim.sock"
        if not self.processes:
            self.processes.append(subprocess.Popen(
                [BUILD / "allot-sim", "--socket", sim_socket, "--spec", self.cards, "--linger", "0",
                 "--foreground"],
                stdin=subprocess.DEVNULL))
            # The socket exists before the simulator answers.
            wait_until(lambda: subprocess.run([BUILD / "allot-sim", "--ctl", "--socket", sim_socket, "stats"],
                                              capture_output=True, check=False).returncode == 0, what="the simulated GPU")
        ended = self.processes[0].poll()
        assert ended is None, f"the simulated GPU has ended: {ended}"
        (self.directory / "settings").write_text(
            f"kube_api = {self.kubeconfig}\nkube_node_name = {self.node}\nlinger = 1h\nlog_level = debug\n{self.settings}")
        (self.directory / "tuning").write_text(self.tuning)
        with open(self.directory / "log", "ab") as log:
            self.processes.append(subprocess.Popen(
                [*self.within, BUILD / "allotd", *self.private, "--foreground", "--run-dir", self.run_dir, "--sim-socket",
                 sim_socket, "--nvml", BUILD / "sim" / "libnvidia-ml.so.1", "--config",
                 self.directory / "settings", "--tuning", self.directory / "tuning"], stdin=subprocess.DEVNULL, stderr=log,
                env=self.environment))
        return self

    @property
    def log(self):
        return (self.directory / "log").read_text(errors="replace")

    def end(self):
        """Ends the daemon in order; its simulated GPU keeps running."""
        daemon = self.processes.pop()
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(timeout=20) == 0, self.log

    def is_alive(self):
        return self.processes[-1].poll() is None

    def stop(self):
        for process in self.processes[::-1]:
            process.kill()
            process.wait()
        self.processes = []
