"""Every hooked function before the start of the driver or NVML, after NVML's end, and with NULL pointers: it
answers as it does without the library."""

import pytest

from conftest import ROOT
from held import compile_c

NVML_UNINITIALIZED = "1"
NVML_NOT_SUPPORTED = "3"
CUDA_NOT_SUPPORTED = "801"
# What a tenant is told differs by the values, not by the edge: it has no process there, or no such pid.
OTHER_VALUES = {"nvmlDeviceGetProcessUtilization", "nvmlSystemGetProcessName"}


@pytest.fixture(scope="session")
def edges(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("edges") / "edges", f"-I{ROOT / 'src'}", "edges.c", "-ldl")


def ends_of(machine, options, *command):
    """{(symbol, case): how it ended}"""
    done = machine.run("--memory", "10GiB", *options, "--", *command)
    assert done.returncode == 0, done.stdout[-200:] + done.stderr
    return {tuple(line.split(" ", 2)[:2]): line.split(" ", 2)[2] for line in done.stdout.splitlines()}


def compare(machine, edges, mode, *options):
    alone = ends_of(machine, (), "env", "-u", "LD_PRELOAD", edges, mode)
    tenant = ends_of(machine, options, edges, mode)
    assert len(alone) > 50 and set(alone) == set(tenant)
    return {case: (alone[case], tenant[case]) for case in alone if alone[case] != tenant[case]}


@pytest.mark.parametrize("mode", ["early", "joined"])
def test_before_the_start(machine, edges, mode):
    # The simulated NVML looks at some structures first.
    assert not {case: ends for case, ends in compare(machine, edges, mode).items()
                if not (case[0].startswith("nvml") and ends[1] == NVML_UNINITIALIZED)}


def test_after_the_end_of_nvml(machine, edges):
    ends = ends_of(machine, (), edges, "late")
    assert len(ends) > 50 and set(ends.values()) == {NVML_UNINITIALIZED}


@pytest.mark.parametrize("options", [(), ("--on-full", "swap")])
def test_null_pointers(machine, edges, options):
    """What a tenant may not use at all is refused whatever the arguments are."""
    def is_refused(symbol, end):
        return end == (NVML_NOT_SUPPORTED if symbol.startswith("nvml") else CUDA_NOT_SUPPORTED)

    assert not {case: ends for case, ends in compare(machine, edges, "null", *options).items()
                if case[0] not in OTHER_VALUES and not is_refused(case[0], ends[1])}
