"""Repeats a bench under daemons of several policies (--policies), such as KubeShare's and those of Lu et al."""

import contextlib
import tempfile

from harness.job import Failed

# Names of --policies beyond those of allotd: its policy, and the tuning of the daemon.
VARIANTS = {
    "feedback-p-nvml": ("feedback", "feedback_control = p\nfeedback_sensor = nvml\n"),      # Algorithm 2 of the paper
    "feedback-pi": ("feedback", "feedback_control = pi\n"),
    "feedback-pid": ("feedback", "feedback_control = pid\n"),
}


def count(settings):
    """How often by_policies() measures."""
    return max(1, len(settings.policies))


@contextlib.contextmanager
def daemon_of(machine, name):
    """A daemon of this policy. Ends all processes of the bench before and after."""
    policy, tuning = VARIANTS.get(name, (name, ""))
    with tempfile.NamedTemporaryFile("w", prefix="allot-tuning-", dir="/tmp") as file:
        file.write(tuning)
        file.flush()
        machine.tenant_environment["ALLOT_TUNING"] = file.name
        try:
            machine.restart(["--policy", policy])
            yield
        finally:
            del machine.tenant_environment["ALLOT_TUNING"]
            machine.restart([])


def under_each(bench, names, measure):
    """Calls measure(name) under a daemon of each policy. The failure of a policy is a result; the others are still measured."""
    for name in names:
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(daemon_of(bench.machine, name))
            except Failed as error:
                bench.result.skip(name, f"not offered by this build: {error}")
                continue
            try:
                measure(name)
            except Failed as error:
                bench.result.skip(f"{name}: the rest", str(error))


def by_policies(bench, measure):
    """Calls measure(prefix of row names) once, or under each of --policies. The result then has them in its name."""
    names = bench.settings.policies
    if not names:
        measure("")
        return
    bench.result.bench += "-" + "+".join(names)
    under_each(bench, names, lambda name: measure(f"{name}: "))
