"""Containers without liballot.so: an administrator moves their GPU memory to host memory and back. Cgroups are real; the GPU is
simulated, and there is no container engine."""

import errno
import os
import signal

import pytest
from boxes import why_not
from machines import wait_until
from python_tenant import PREAMBLE
from test_checkpoint import BUFFERS, HELD, says
from test_freezer import make_boxes  # noqa: F401
from sim_peers import start_sim  # noqa: F401

VERSION = next((v for v in ("v2", "v1") if why_not(v) is None), None)
pytestmark = pytest.mark.skipif(VERSION is None, reason=f"v2: {why_not('v2')}, v1: {why_not('v1')}")

CODE = PREAMBLE + BUFFERS + """
while look() != "end":
    check()
"""


class Program:
    """BUFFERS in its own container. It prints a line when it holds all buffers, and one after each check."""

    def __init__(self, boxes, python):
        self.boxes, self.box = boxes, boxes.make()
        self.process = self.box.start(python, "-c", CODE, stdin=-1)
        assert self.process.stdout.readline() == "look\n"
        self.id = self.box.id[:12]
        wait_until(lambda: self.held() == HELD, what="its memory")

    def container(self):
        return self.boxes.container(self.box)

    def held(self):
        container = self.container()
        return sum(d["memory_used_bytes"] for d in container["devices"]) if container else None

    def check(self):
        self.say("check")
        assert self.process.stdout.readline() == "look\n"

    def say(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def end(self):
        self.say("end")
        assert self.process.wait(timeout=10) == 0


@pytest.fixture
def boxes(make_boxes):  # noqa: F811
    return make_boxes(VERSION, freezer="off")


def used(boxes):
    return boxes.request("list")["devices"][0]["memory_used_bytes"]


def test_memory_is_swapped_out_and_back(boxes, python):
    program = Program(boxes, python)
    for _ in range(2):
        done = boxes.allot("pause", program.id, "--swap-out")
        assert done.returncode == 0, done.stderr
        assert done.stderr.splitlines()[-1] == f"allot: pause: '{program.id}': its GPU memory is in host memory"
    container = program.container()
    assert container["state"] == "swapped" and container["frozen_s"] == 0
    swap = container["swap"]
    assert (swap["kind"], swap["state"], swap["swapped_bytes"]) == ("checkpoint", "out", HELD)
    # The checkpoint helper, which called the driver, is no GPU task.
    assert {task["container"] for task in boxes.request("tasks")["tasks"]} == {program.box.id}
    wait_until(lambda: used(boxes) == 0 and program.held() == 0, what="an empty GPU")
    program.say("check")
    assert not says(program, 0.3)
    done = boxes.allot("resume", program.id)
    assert done.returncode == 0, done.stderr
    assert program.process.stdout.readline() == "look\n"
    wait_until(lambda: used(boxes) == HELD, what="its memory on the GPU")
    assert program.container()["state"] == "running"
    assert boxes.allot("resume", program.id).returncode == 1
    program.end()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_memory_returns_when_the_daemon_ends(boxes, python, how):
    program = Program(boxes, python)
    assert boxes.allot("pause", program.id, "--swap-out").returncode == 0
    program.say("check")
    boxes.end_daemon(how)
    assert program.process.stdout.readline() == "look\n"
    boxes.start_daemon()
    wait_until(lambda: program.held() == HELD, what="its memory")
    program.check()
    program.end()


def test_the_next_daemon_restores_memory_if_the_helper_died_too(boxes, python):
    """Daemon and helper are killed at once, as by a service manager. The next daemon restores the memory."""
    program = Program(boxes, python)
    assert boxes.allot("pause", program.id, "--swap-out").returncode == 0
    helper = int((boxes.run_dir / f"keeper-{program.box.id}").read_text().split()[1])
    boxes.daemon.send_signal(signal.SIGSTOP)
    os.kill(helper, signal.SIGKILL)
    boxes.end_daemon(signal.SIGKILL)
    program.say("check")
    assert not says(program, 0.5)
    boxes.start_daemon()
    assert program.process.stdout.readline() == "look\n"
    wait_until(lambda: not list(boxes.run_dir.glob("keeper-*")), what="the end of the helper")
    program.end()


def test_a_container_killed_while_swapped_out(boxes, python):
    program = Program(boxes, python)
    assert boxes.allot("pause", program.id, "--swap-out").returncode == 0
    program.process.kill()
    program.process.wait()
    wait_until(lambda: program.container()["state"] == "ended", what="its end")
    wait_until(lambda: not list(boxes.run_dir.glob("keeper-*")), what="the end of the helper")
    assert program.container()["swap"] is None and used(boxes) == 0


def test_a_frozen_container_is_not_swapped_out(boxes, python):
    program = Program(boxes, python)
    assert boxes.allot("pause", program.id).returncode == 0
    done = boxes.allot("pause", program.id, "--swap-out")
    assert done.returncode == 1 and "is frozen" in done.stderr and done.stderr.count("\n") == 1
    assert boxes.allot("resume", program.id).returncode == 0
    program.check()
    program.end()


def test_a_poll_fails_once_another_request_moves_it(boxes, python):
    """Otherwise the first client would report a success, though the memory has been moved back."""
    program = Program(boxes, python)
    name = program.id

    def poll(op, **more):
        return boxes.request(op, name=name, poll=True, **more)

    assert boxes.allot("pause", name, "--swap-out").returncode == 0
    assert "error" not in poll("pause", swap_out=True)
    refused = poll("resume")
    assert refused["errno"] == errno.ECANCELED and "paused again with --swap-out" in refused["error"], refused
    assert boxes.request("resume", name=name)["moving"]
    refused = poll("pause", swap_out=True)
    assert refused["errno"] == errno.ECANCELED and "was resumed" in refused["error"], refused
    assert "error" not in poll("resume")
    program.check()
    assert poll("pause", swap_out=True)["errno"] == errno.ECANCELED and "error" not in poll("resume")
    program.end()


def test_a_container_stays_out_while_its_memory_is_promised(boxes, python):
    """While it is swapped out, a tenant is promised memory that it would need. A resume then fails, and gives the reason."""
    program = Program(boxes, python)
    assert boxes.allot("pause", program.id, "--swap-out").returncode == 0
    wait_until(lambda: used(boxes) == 0, what="an empty GPU")
    most = boxes.request("list")["devices"][0]["memory_bytes"]
    made = boxes.request("create", name="big", devices=[{"index": 0, "memory_bytes": most - HELD // 2}])
    assert made.get("ok", True) and "error" not in made, made
    done = boxes.allot("resume", program.id)
    assert done.returncode == 1 and "stays in host memory: it needs" in done.stderr, done.stderr
    assert program.container()["state"] == "swapped"
    boxes.request("remove", name="big")
    assert boxes.allot("resume", program.id).returncode == 0
    program.check()
    program.end()
