"""PyTorch and JAX in a tenant: each sees a GPU with only the quota's memory, and works on it."""

import importlib.util
import os
import sys

QUOTA = 16 << 30
JAX_QUOTA = 8 << 30
START_S = 240           # the import alone can take a minute on a cold disk

HERE = os.path.dirname(os.path.abspath(__file__))


def check_torch(machine, tally, options, model):
    job = machine.tenant("torch", [sys.executable, options.torch_load, "--model", model, "--json",
                                   "--seconds", "3"],
                         ["--memory", f"{QUOTA >> 30}GiB", "--cores", "50"])
    name = f"PyTorch, {model}, under a quota"
    status = job.wait(START_S)
    events = job.json()
    if status != 0 or not events:
        tally.bad(name, f"status {status}{job.tail()}")
        return
    last = events[-1][1]
    tally.verdict(last["steps"] > 0 and last.get("total_bytes") == QUOTA, name,
                  f"{last['steps']} steps, {last['step_ms_median']} ms each; total "
                  f"{last.get('total_bytes')} bytes")


def check_jax(machine, tally):
    name = "JAX sizes its preallocation to the quota"
    job = machine.tenant("jax", [sys.executable, os.path.join(HERE, "jax_memory.py")],
                         ["--memory", f"{JAX_QUOTA >> 30}GiB"], stdin=True)
    try:
        while (line := job.wait_line(len(job.lines), START_S)) is not None:
            if line.startswith("{"):
                break
        events = job.json()
        if not events:
            tally.bad(name, f"status {job.wait(10)}{job.tail()}")
            return
        last = events[-1][1]
        device = machine.tenant_device("jax")
        held = device["memory_used_bytes"] if device else None
        tally.verdict(0.6 * JAX_QUOTA <= last["bytes_limit"] <= JAX_QUOTA and
                      held is not None and last["bytes_limit"] <= held <= JAX_QUOTA, name,
                      f"quota {JAX_QUOTA}, JAX's limit {last['bytes_limit']}, ledger {held}")
    finally:
        job.kill()


def check(machine, tally, options):
    own_load = "bench/load/torch_load.py" in options.torch_load.replace(os.sep, "/")
    has_torch = importlib.util.find_spec("torch") or not own_load
    for model in ("resnet18", "transformer", "gru"):
        if not has_torch or (machine.sim and own_load):
            tally.skip(f"PyTorch, {model}", "no PyTorch here" if not has_torch else
                       "the simulated GPU computes nothing")
        else:
            check_torch(machine, tally, options, model)
    if not importlib.util.find_spec("jax") or machine.sim:
        tally.skip("JAX", "none here" if not machine.sim else "the simulated GPU computes nothing")
    else:
        check_jax(machine, tally)
