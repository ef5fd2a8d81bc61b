"""A training process that stays (bench/load/trainings/serve.py), native or in a tenant."""

import json
import os
import sys
import time

from .job import Failed
from .load import LATE_S, Series

READY_S = 240       # import of torch, the first steps: a slow disk, a cold cache
MODEL_S = 120


class Trainer:
    """options: those of allot run; None: native, and environment is what is added then. more: further
    options of torch_load.py. program: another one that obeys lines in place of it. ready() waits for what is started here, so
    that several can start together."""

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
        """Of the line that it was last told. Failed when that can't be obeyed."""
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
        """The steps of about so long a time, as it goes now."""
        return max(least, round(1e3 * seconds / self.ask("measure", seconds)["step_ms_mean"]))

    def epoch_s(self, steps):
        return self.ask("steps", steps, limit_s=600)["elapsed_s"]

    def turns(self, pairs, steps):
        """(while liballot.so stands aside, with it), in seconds, of each pair."""
        answer = self.ask("turns", pairs, steps, limit_s=600)
        return list(zip(answer["aside_s"], answer["with_s"]))

    def set(self, *options):
        """As a tenant: allot set."""
        self.machine.tell("set", self.name, *options)

    def end(self):
        self.job.kill()


def processors_of_their_own(count, trainings=1):
    """Options for trainings that run at once, each on so many processors: what takes turns with one of them takes the same
    option. One is served by a neighbour of the machine's where the other is not, or by a slower processor: several percent
    of what launches. None where there are too few: what else runs needs some."""
    if len(os.sched_getaffinity(0)) < count * (trainings + 1):
        return trainings * [()]
    return [("--processors", f"{count}:{i}") for i in range(trainings)]


def ready(trainers):
    for trainer in trainers:
        trainer.answer(READY_S)


def take_models(trainers, models):
    """Gives each its (name, batch), all at the same time; what the first says of its own. Their
    warm-ups are done then."""
    for trainer, (name, batch) in zip(trainers, models):
        trainer.say("model", name, batch)
    answers = [trainer.answer(MODEL_S) for trainer in trainers]
    for trainer, answer in zip(trainers, answers):
        if "error" in answer:
            raise Failed(f"{trainer.name}: {answer['model']}, batch {answer['batch']}: "
                         f"{answer['error']}")
    return answers[0]


def series_of(answer, at):
    """Steps against time from `at` on, of an answer to `record`."""
    shift_s = answer["began_at"] - at
    if shift_s > LATE_S:
        raise Failed(f"a training began {shift_s:.2f} s late")
    return Series({"t_s": end_s + shift_s, "kernels": 1} for end_s in answer["ends_s"])


def record_together(trainers, seconds, look=None, look_s=0.0):
    """All from the same moment on: the answers, with each one's Series as "series". look() is called look_s after that."""
    # Rounded as it is said: a training that began earlier than `at` could end before the window does.
    at = round(time.time() + 0.5, 3)
    for trainer in trainers:
        trainer.say("record", seconds, f"{at:.3f}")
    if look:
        time.sleep(max(0.0, at + look_s - time.time()))
        look()
    answers = []
    for trainer in trainers:
        answer = trainer.answer(seconds + MODEL_S)
        answers.append({**answer, "series": series_of(answer, at)})
    return answers
