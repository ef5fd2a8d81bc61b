"""The machine that the other files attack: without an attack, a tenant has its quota, and allot run prints nothing about a
violation."""

from machines import GIB


def test_an_honest_tenant_has_its_quota_and_no_violation(machine, python):
    program = """
from cuda.bindings import driver
driver.cuInit(0)
_, device = driver.cuDeviceGet(0)
_, context = driver.cuDevicePrimaryCtxRetain(device)
driver.cuCtxSetCurrent(context)
_, free, total = driver.cuMemGetInfo()
print(total)
"""
    done = machine.run("--memory", "10GiB", "--", python, "-c", program)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 10 * GIB
    assert "violation" not in done.stderr
