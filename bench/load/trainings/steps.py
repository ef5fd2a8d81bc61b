"""Times the steps of a training. Needs no PyTorch: a training is any object with launch(), wait() and timer(), see
training.py."""

import statistics
import time


class Taken:
    """The times of steps by the host's clock. A step ends after its work and its pause."""

    def __init__(self):
        self.began_at = time.time()
        self.begin = time.perf_counter()
        self.ends_s = []        # end of each step, from the beginning
        self.launch_ms = []     # time to queue each step
        self.gpu_ms = []        # by the training's timer, if it is used

    @property
    def elapsed_s(self):
        return self.ends_s[-1] if self.ends_s else 0.0

    def step_ms(self):
        return [(end - begin) * 1e3 for begin, end in zip([0.0, *self.ends_s], self.ends_s)]

    def summary(self):
        """The values of a report."""
        times_ms = self.step_ms()
        values = {"steps": len(times_ms), "elapsed_s": round(self.elapsed_s, 6),
                  "step_ms_median": round(statistics.median(times_ms), 4),
                  "step_ms_mean": round(statistics.fmean(times_ms), 4),
                  "step_ms_max": round(max(times_ms), 4),
                  "launch_ms_median": round(statistics.median(self.launch_ms), 4)}
        if self.gpu_ms:
            values["gpu_ms_mean"] = round(statistics.fmean(self.gpu_ms), 4)
        return values


def take_steps(training, goes_on, pause_s=0.0, with_timer=False, sync_every=1):
    """Takes steps while goes_on(steps done, seconds since the beginning) is true, and returns their times. pause_s: a sleep
    after each step, in place of other work of the host. sync_every: waits for the GPU after so many steps; 0: only after the
    last one. A step without a wait ends when it is queued. The last step always ends when the GPU has done it. A timer needs a
    wait after each step."""
    timer = training.timer() if with_timer else None
    sync_every = 1 if with_timer else sync_every
    taken = Taken()
    while goes_on(len(taken.ends_s), taken.elapsed_s):
        begin = time.perf_counter()
        if timer:
            timer.begin()
        training.launch()
        if timer:
            timer.end()
        taken.launch_ms.append((time.perf_counter() - begin) * 1e3)
        if sync_every and (len(taken.ends_s) + 1) % sync_every == 0:
            training.wait()
        if timer:
            taken.gpu_ms.append(timer.ms())
        if pause_s:
            time.sleep(pause_s)
        taken.ends_s.append(time.perf_counter() - taken.begin)
    if sync_every != 1 and taken.ends_s:
        training.wait()
        taken.ends_s[-1] = time.perf_counter() - taken.begin
    return taken


def end_of(seconds):
    """The argument `goes_on` of take_steps() for a run of this length."""
    return lambda _, elapsed_s: elapsed_s < seconds


def end_of_ranks(rank, stop):
    """The same for a rank of a training on several GPUs. stop: an object with a shared .value, 0 at the start. Only rank 0
    decides when a timed run ends; otherwise ranks could differ in their number of steps and deadlock. No rank ends a step that
    another has not begun, so no rank is ahead of the next step of rank 0."""
    def of(seconds):
        def goes_on(done, elapsed_s):
            if rank == 0 and stop.value == 0 and elapsed_s >= seconds:
                stop.value = done + 1
            return stop.value == 0 or done < stop.value
        return goes_on
    return of
