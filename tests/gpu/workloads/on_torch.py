"""What the PyTorch workloads share: the same numbers each time, and asking for too much."""

import os
import warnings

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")     # read once, by cuBLAS

import torch                            # noqa: E402
import torch.nn.functional as F         # noqa: E402

import protocol                         # noqa: E402

SEED = 20261121
BIG_STEP = 256 << 20


def start():
    """Max-pooling's backward is deterministic in the layout used here, yet warned of."""
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    warnings.filterwarnings("ignore", message=".*deterministic.*")


def random(*shape, seed=SEED, device="cuda"):
    """From the CPU's generator, whose numbers no GPU changes."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).to(device)


def classes(count, limit, seed=SEED, device="cuda"):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(limit, (count,), generator=generator).to(device)


def settle():
    torch.cuda.synchronize()


def ask_too_much(quota):
    """At once, then in steps with everything kept until there is no more. All is written to."""
    if quota is None:
        return
    protocol.ask_too_much(lambda: torch.ones(2 * quota, dtype=torch.uint8, device="cuda"),
                          torch.OutOfMemoryError, "2x the quota at once")

    def in_steps():
        kept = []
        while len(kept) * BIG_STEP <= quota:
            kept.append(torch.ones(BIG_STEP, dtype=torch.uint8, device="cuda"))
        torch.cuda.synchronize()

    protocol.ask_too_much(in_steps, torch.OutOfMemoryError, "in steps of 256 MiB")
    torch.cuda.empty_cache()


def bytes_of(*tensors):
    return [t.detach().cpu().reshape(-1).view(torch.uint8).numpy() for t in tensors]


def end(*tensors):
    """Their bytes decide; the sums tell how far apart two digests are."""
    sums = [float(t.detach().double().sum()) for t in tensors]
    protocol.end(*bytes_of(*tensors), values=sums, rtol=0)


def train(model, optimizer, inputs, targets, steps):
    """Cross entropy on one batch; the losses."""
    losses = []
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)
