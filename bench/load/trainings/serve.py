"""A training process for many measurements, so that PyTorch is imported and started only once. It reads commands from its
input, one a line, and answers each with a line of JSON.

    model NAME BATCH    frees the model, makes this one and warms it up; {"fits": false, "error"} if there is not enough
                        memory, and the process goes on
    free                frees the model
    pause MS            from now on, the host sleeps after each step
    sync N              from now on, waits for the GPU after each N steps; 0: only at the end
    steps N             takes steps until the first wait, which do not count, then N steps that do
    measure SECONDS     takes steps for that long
    busy SECONDS        as measure; also measures the GPU's time of a step
    record SECONDS AT   as measure, from the Unix time AT on; also notes each step's end
    bypass 1            from now on liballot.so is bypassed, until bypass 0
    turns PAIRS N       PAIRS times N steps with liballot.so bypassed and N steps with it, each after steps that do not count.
                        In every other pair the other one is first. There are no commands in between, so turns can be short,
                        and drift affects both equally
"""

import json
import time

from .steps import end_of, take_steps
from .table import BATCHES

LEAST_S = 0.001


class Refused(Exception):
    """A command that can't be obeyed; the text says what is wrong with it."""


def number(text, least):
    try:
        value = float(text)
    except ValueError:
        value = None
    if value is None or not value >= least:
        raise Refused(f"'{text}': not a number of at least {least}")
    return value


class Server:
    """make(name, batch): returns (a warm training, None), or (None, the error if memory did not suffice). free(): is called
    after the previous training was dropped. until(seconds): returns the test that ends a timed run, see take_steps().
    bypass(is_on): lets calls bypass liballot.so; None if the library can't."""

    def __init__(self, make, free=lambda: None, until=end_of, bypass=None):
        self.make = make
        self.free = free
        self.until = until
        self.bypass = bypass
        self.training = None
        self.pause_s = 0.0
        self.sync_every = 1
        self.commands = {"model": (self._model, 2), "free": (self._free, 0),
                         "pause": (self._pause, 1), "sync": (self._sync, 1), "steps": (self._steps, 1),
                         "measure": (self._measure, 1), "busy": (self._busy, 1),
                         "record": (self._record, 2), "bypass": (self._bypass, 1), "turns": (self._turns, 2)}

    def obey(self, line):
        """The answer, as a dict."""
        name, *words = line.split() or [""]
        function, count = self.commands.get(name, (None, 0))
        try:
            if function is None:
                raise Refused(f"'{name}': none of " + ", ".join(self.commands))
            if len(words) != count:
                raise Refused(f"'{line.strip()}': {name} takes {count} words")
            return function(*words)
        except Refused as error:
            return {"refused": str(error)}

    def _free(self):
        self.training = None
        self.free()
        return {"free": True}

    def _model(self, name, batch):
        if name not in BATCHES:
            raise Refused(f"'{name}': none of " + ", ".join(BATCHES))
        self._free()
        self.pause_s = 0.0
        self.sync_every = 1
        batch = int(number(batch, 1))
        begin = time.monotonic()
        self.training, error = self.make(name, batch)
        answer = {"model": name, "batch": batch, "fits": error is None,
                  "took_s": round(time.monotonic() - begin, 3)}
        if error is not None:
            self.free()
            return {**answer, "error": error}
        return {**answer, "input": self.training.size, **self.training.memory()}

    def _pause(self, ms):
        self.pause_s = number(ms, 0) / 1e3
        return {"pause_ms": self.pause_s * 1e3}

    def _sync(self, steps):
        self.sync_every = int(number(steps, 0))
        return {"sync": self.sync_every}

    def _set_bypass(self, is_on):
        if not self.bypass:
            raise Refused("no liballot-bypass.so is preloaded")
        self.bypass(is_on)

    def _bypass(self, is_on):
        if is_on not in ("0", "1"):
            raise Refused(f"'{is_on}': not 0 or 1")
        self._set_bypass(is_on == "1")
        return {"bypass": is_on == "1"}

    def _take(self, goes_on, with_timer=False):
        if self.training is None:
            raise Refused("no model yet")
        return take_steps(self.training, goes_on, self.pause_s, with_timer, self.sync_every)

    def _counted(self, count):
        self._take(lambda done, _: done < max(1, self.sync_every))
        return self._take(lambda done, _: done < count)

    def _steps(self, count):
        return self._counted(int(number(count, 1))).summary()

    def _turns(self, pairs, steps):
        pairs, steps = int(number(pairs, 1)), int(number(steps, 1))
        took_s = {True: [], False: []}      # by whether the library is bypassed
        for pair in range(pairs):
            for is_bypassed in (True, False) if pair % 2 else (False, True):
                self._set_bypass(is_bypassed)
                took_s[is_bypassed].append(self._counted(steps).elapsed_s)
        self._set_bypass(False)             # later commands use the library
        return {"aside_s": took_s[True], "with_s": took_s[False]}

    def _measure(self, seconds):
        return self._take(self.until(number(seconds, LEAST_S))).summary()

    def _busy(self, seconds):
        return self._take(self.until(number(seconds, LEAST_S)), with_timer=True).summary()

    def _record(self, seconds, at):
        seconds, at = number(seconds, LEAST_S), number(at, 0)
        late_s = max(0.0, time.time() - at)
        # sleep() uses another clock, so it may end some microseconds early.
        while (left_s := at - time.time()) > 0:
            time.sleep(left_s)
        taken = self._take(self.until(seconds))
        return {**taken.summary(), "late_s": round(late_s, 4), "began_at": taken.began_at,
                "ends_s": [round(end, 6) for end in taken.ends_s]}


def merge(answers):
    """One answer for the ranks of a training: that of the first rank that failed, otherwise rank 0's with the longest times."""
    for answer in answers:
        if "refused" in answer or "error" in answer:
            return answer
    merged = dict(answers[0])
    for key in ("elapsed_s", "step_ms_max", "took_s", "late_s"):
        if key in merged:
            merged[key] = max(answer[key] for answer in answers)
    return merged


def serve(obey, lines, out):
    """Answers each line until the input ends."""
    print(json.dumps({"ready": True}), file=out, flush=True)
    for line in lines:
        if line.strip():
            print(json.dumps(obey(line)), file=out, flush=True)
