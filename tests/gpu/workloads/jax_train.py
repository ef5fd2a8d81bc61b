"""JAX trains a small network. It takes most of what it is told the GPU has, before it begins, or
with --grow only as it needs it (XLA_PYTHON_CLIENT_PREALLOCATE=false)."""

import os
import sys

import protocol

options = protocol.arguments(__doc__, "--grow")
if options.grow:
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
# No kernel is chosen by measured time.
os.environ["XLA_FLAGS"] = "--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0"

import jax                              # noqa: E402
import jax.numpy as jnp                 # noqa: E402
import numpy                            # noqa: E402

STEPS = 20
WIDTH, BATCH, CLASSES = 512, 256, 100


def loss_of(parameters, inputs, targets):
    hidden = jax.nn.gelu(inputs @ parameters["up"])
    logits = jax.nn.log_softmax(hidden @ parameters["down"])
    return -jnp.mean(jnp.sum(logits * targets, axis=1))


@jax.jit
def step(parameters, inputs, targets):
    loss, slopes = jax.value_and_grad(loss_of)(parameters, inputs, targets)
    return jax.tree.map(lambda p, s: p - 0.1 * s, parameters, slopes), loss


def train(parameters, inputs, targets):
    losses = []
    for _ in range(STEPS):
        parameters, loss = step(parameters, inputs, targets)
        losses.append(loss)
    return parameters, losses


def check_limit(device):
    stats = device.memory_stats()
    limit, held = stats["bytes_limit"], stats.get("pool_bytes", stats["bytes_in_use"])
    if options.quota is not None and limit > options.quota:
        sys.exit(f"JAX's limit is {limit}, the quota {options.quota}")
    print(f"jax: limit {limit}, pool {held}", flush=True)


def main():
    device = jax.devices()[0]
    if device.platform != "gpu":
        protocol.skip("JAX finds no GPU")
    numbers = numpy.random.default_rng(20261121)
    parameters = {"up": numbers.standard_normal((WIDTH, 4 * WIDTH), dtype=numpy.float32) * 0.05,
                  "down": numbers.standard_normal((4 * WIDTH, CLASSES), dtype=numpy.float32) * 0.05}
    inputs = jnp.asarray(numbers.standard_normal((BATCH, WIDTH), dtype=numpy.float32))
    targets = jax.nn.one_hot(jnp.asarray(numbers.integers(CLASSES, size=BATCH)), CLASSES)
    parameters, first = train(parameters, inputs, targets)
    big = jnp.ones((256, 1 << 20))          # 1 GiB
    jax.block_until_ready((parameters, big))
    check_limit(device)
    protocol.hold()
    if options.quota is not None:
        protocol.ask_too_much(
            lambda: jax.block_until_ready(jnp.ones((2 * options.quota >> 22, 1 << 20))),
            jax.errors.JaxRuntimeError, "2x the quota", ("RESOURCE_EXHAUSTED",))
    parameters, second = train(parameters, inputs, targets)
    protocol.end(*(numpy.asarray(part) for part in
                   (*first, *second, *parameters.values(), big[:, 0])))


main()
