"""A training process that keeps running and takes commands (bench/load/trainings/serve.py), native or in a tenant."""

import json
import os
import sys
import time

from .job import Failed
from .load import LATE_S, Series

READY_S = 240       # for importing torch and the first steps, with a slow disk and a cold cache
MODEL_S = 120


class Trainer:
    """options: options of allot run, or None for a native process, which gets the variables in environment. more: further
    options of torch_load.py. program: another program with the same commands. The constructor does not wait; ready() does,
    so that several trainings can start together."""

    def __init__(self, bench, name, options=None, more=(), environment=None, program=None):
        settings = bench.settings
        self.name = name
        self.machine = bench.machine
        self.job = bench.machine.start(
            name, [sys.executable, program or settings.torch_load, "--serve", *settings.torch_options, *more],
            options, stdin=True, environment=environment)
        self.read = 0

    def say(self, *words):
        try:
            self.job.say(" ".join(map(str, words)))
        except OSError:
            raise Failed(f"{self.name}: has ended{self.job.tail()}") from None

    def has_answered(self):
        return any(line.startswith("{") for line in self.job.text()[self.read:])

    def answer(self, limit_s):
        """The answer to the last command. Raises Failed if the training refused the command or has ended."""
        deadline = time.monotonic() + limit_s
        while True:
            line = self.job.wait_line(self.read, max(0.0, deadline - time.monotonic()))
            if line is None:
                raise Failed(f"{self.name}: ended{self.job.tail()}")
            self.read += 1
            if line.startswith("{"):
                break
        answer = json.loads(line)
        if "refused" in answer:
            raise Failed(f"{self.name}: {answer['refused']}")
        return answer

    def ask(self, *words, limit_s=MODEL_S):
        self.say(*words)
        return self.answer(limit_s)

    def steps_in(self, seconds, least=2):
        """How many steps take about this long at the current speed."""
        return max(least, round(1e3 * seconds / self.ask("measure", seconds)["step_ms_mean"]))

    def epoch_s(self, steps):
        return self.ask("steps", steps, limit_s=600)["elapsed_s"]

    def turns(self, pairs, steps):
        """[(seconds while liballot.so is bypassed, seconds with it)] of each pair."""
        answer = self.ask("turns", pairs, steps, limit_s=600)
        return list(zip(answer["aside_s"], answer["with_s"]))

    def set(self, *options):
        """Changes the tenant's options with allot set."""
        self.machine.tell("set", self.name, *options)

    def end(self):
        self.job.kill()


def processors_of_their_own(count, trainings=1):
    """Options that give each of these concurrent trainings its own `count` processors. Trainings that are compared
    alternately must get the same option, because a slower or busier processor changes launching by several percent. The
    options are empty if the machine has too few processors, since other programs need some, too."""
    if len(os.sched_getaffinity(0)) < count * (trainings + 1):
        return trainings * [()]
    return [("--processors", f"{count}:{i}") for i in range(trainings)]


def ready(trainers):
    for trainer in trainers:
        trainer.answer(READY_S)


def take_models(trainers, models):
    """Makes all trainings load their (name, batch) at the same time, and waits until they are warm. Returns the answer of
    the first."""
    for trainer, (name, batch) in zip(trainers, models):
        trainer.say("model", name, batch)
    answers = [trainer.answer(MODEL_S) for trainer in trainers]
    for trainer, answer in zip(trainers, answers):
        if "error" in answer:
            raise Failed(f"{trainer.name}: {answer['model']}, batch {answer['batch']}: "
                         f"{answer['error']}")
    return answers[0]


def series_of(answer, at):
    """The number of steps as a function of time, from `at` on, from an answer to `record`."""
    shift_s = answer["began_at"] - at
    if shift_s > LATE_S:
        raise Failed(f"a training began {shift_s:.2f} s late")
    return Series({"t_s": end_s + shift_s, "kernels": 1} for end_s in answer["ends_s"])


def record_together(trainers, seconds, sample=None, sample_s=0.0):
    """Records all trainings from the same moment on. Returns their answers, with a Series as "series" in each. Calls sample()
    sample_s after that moment."""
    # Rounded to the digits that are sent: a training that began before `at` could end before the window does.
    at = round(time.time() + 0.5, 3)
    for trainer in trainers:
        trainer.say("record", seconds, f"{at:.3f}")
    if sample:
        time.sleep(max(0.0, at + sample_s - time.time()))
        sample()
    answers = []
    for trainer in trainers:
        answer = trainer.answer(seconds + MODEL_S)
        answers.append({**answer, "series": series_of(answer, at)})
    return answers
