"""Two PyTorch trainings, each with 60 % of the GPU's memory, all of which it changes in each step. Checks that both finish
with the same losses as alone, and measures how long that takes."""

import os
import sys
import time

from harness.build import REPOSITORY
from harness.job import Failed
from harness.result import Row, at_least

from .oversubscribe import PART, SERIAL, Scene

PROGRAM = os.path.join(REPOSITORY, "bench", "swap_training.py")
# The part of a training's memory that is not parameters: the context, libraries, data, and one more matrix while the
# parameters are made.
SPARE_GIB = 3
START_S = 240       # an import alone can take a minute on a cold disk


def steps(settings):
    return 8 if settings.quick else 40


def seconds_of(settings):
    return 60 + 2.6 * steps(settings)


class Trainings:
    def __init__(self, bench, scene):
        self.bench, self.scene = bench, scene
        self.gib = scene.mib(PART) // 1024 - SPARE_GIB

    def start(self, name, options):
        command = [sys.executable, PROGRAM, "--gib", str(self.gib),
                   "--steps", str(steps(self.bench.settings)), "--wait"]
        return self.bench.machine.start(name, command, options, stdin=True)

    def run(self, label, count, options):
        """(seconds from the first step to the end of the last one, reports of the trainings that finished)"""
        jobs = [self.start(f"{label}-{i + 1}", options) for i in range(count)]
        # A training that fails while it allocates its memory prints no line.
        ready = [job for job in jobs if job.wait_line(0, START_S) is not None]
        begin = time.monotonic()
        for job in ready:
            job.say("go")
        limit_s = START_S + 10 * steps(self.bench.settings)
        ended = [job.json()[-1][1] for job in ready if job.wait(limit_s) == 0]
        took = time.monotonic() - begin
        failed = [job for job in jobs if job.wait(10) != 0]
        for job in failed:
            print(f"# {job.name}: {job.tail()}", flush=True)
        self.bench.machine.settle()
        return took, ended


def swap_trainings(bench):
    refused = bench.machine.refuses("--on-full", "swap")
    if refused:
        bench.result.skip("--on-full swap", refused)
        return
    scene = Scene(bench)
    trainings = Trainings(bench, scene)
    add = bench.result.add
    add(Row("the card, of which each needs 60 %", "GiB", scene.room / 1024))
    add(Row("parameters of a training", "GiB", trainings.gib))
    alone_s, alone = trainings.run("alone", 1, None)
    if not alone:
        raise Failed("a training alone did not come to its end")
    _, native = trainings.run("native", 2, None)
    add(Row("native: came to their end", "of 2", len(native), 2))
    both_s, ended = trainings.run("swap", 2, scene.swap(PART))
    add(at_least(Row("swap: came to their end", "of 2", len(ended), 2), 2))
    same = sum(one["losses"] == alone[0]["losses"] for one in ended)
    add(at_least(Row("swap: with the losses of one alone, to the bit", "of 2", same, 2), 2))
    add(Row("swap: both", "s", both_s, native=2 * alone_s))
    if len(ended) == 2:
        add(Row("swap: the longest step", "s", max(one["longest_step_s"] for one in ended),
                native=alone[0]["longest_step_s"]))
        add(at_least(Row("swap: throughput against one after the other", "x", 2 * alone_s / both_s), SERIAL))
    bench.machine.stop_all()
