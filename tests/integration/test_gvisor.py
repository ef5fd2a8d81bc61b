"""Real gVisor: `runsc do` runs a command on the machine's own files, read-only. allot can't share a GPU there, and says so,
whichever way a program finds the driver."""

import shutil

import pytest

from machines import BUILD


@pytest.fixture
def in_gvisor(machine, tmp_path):
    """Returns run(COMMAND...), which runs a tenant's command in gVisor and returns its standard output and error."""
    runsc = shutil.which("runsc")
    if not runsc:
        pytest.skip("no runsc")

    def run(*command):
        done = machine.run("--memory", "10GiB", "--", runsc, "--network=none", "--ignore-cgroups", f"--root={tmp_path}",
                           "do", *command)
        output = done.stdout + done.stderr
        if done.returncode == 2 and not output:
            pytest.skip("runsc itself crashed, as that of Debian 13 often does")
        return output

    output = run("cat", "/proc/version")
    if not output.startswith("Linux version"):
        pytest.skip(f"runsc: {output[-200:]}")
    return run


@pytest.mark.parametrize("way", ["linked", "dlsym"])
def test_a_program_fails_and_says_why(in_gvisor, python, way):
    output = in_gvisor(BUILD / "allot-load", "--seconds", 1) if way == "linked" else in_gvisor(
        python, "-c", "import ctypes; print('cuInit', ctypes.CDLL('libcuda.so.1').cuInit(0))")
    assert "no GPU for this process: it runs in gVisor (runsc)" in output
    assert ("CUDA_ERROR_SYSTEM_NOT_READY" if way == "linked" else "cuInit 802") in output


def test_the_doctor_says_why(in_gvisor):
    assert in_gvisor(BUILD / "allot", "doctor").startswith("problem  kernel             gVisor (runsc)")
