"""The machine that the other files attack: without an attack, a tenant has its quota, and no violation."""

import subprocess

from machines import GIB


def test_an_honest_tenant_has_its_quota_and_no_violation(machine, python):
    program = """
from cuda.bindings import driver
driver.cuInit(0)
_, device = driver.cuDeviceGet(0)
_, context = driver.cuDevicePrimaryCtxRetain(device)
driver.cuCtxSetCurrent(context)
_, free, total = driver.cuMemGetInfo()
print(total, flush=True)
input()
"""
    process = machine.start("--name", "honest", "--memory", "10GiB", "--", python, "-c", program, stdin=subprocess.PIPE)
    assert int(process.stdout.readline()) == 10 * GIB
    tenant = machine.tenants()["honest"]
    assert len(tenant["processes"]) == 1 and tenant["violations"] == 0
    _, errors = process.communicate("\n", timeout=30)
    assert process.returncode == 0, errors
