"""PyTorch on the driver's stream-ordered allocator (cudaMallocAsync): its pool keeps the freed."""

import os

os.environ["PYTORCH_ALLOC_CONF"] = os.environ["PYTORCH_CUDA_ALLOC_CONF"] = \
    "backend:cudaMallocAsync"

import sys                              # noqa: E402

import torch                            # noqa: E402
from torch import nn                    # noqa: E402

import on_torch                         # noqa: E402
import protocol                         # noqa: E402

MIB = 1 << 20


def main():
    options = protocol.arguments(__doc__)
    on_torch.start()
    if torch.cuda.get_allocator_backend() != "cudaMallocAsync":
        sys.exit(f"the allocator is {torch.cuda.get_allocator_backend()}")
    model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 100)).to("cuda")
    optimizer = torch.optim.Adam(model.parameters())
    inputs, targets = on_torch.random(1024, 512), on_torch.classes(1024, 100)
    first = on_torch.train(model, optimizer, inputs, targets, 20)
    kept = [torch.ones(mib * MIB, dtype=torch.uint8, device="cuda") for mib in (100, 300, 500)]
    on_torch.settle()
    protocol.hold("grown")
    del kept[1:]
    on_torch.settle()
    protocol.hold("freed, kept by the pool")
    torch.cuda.empty_cache()
    on_torch.settle()
    protocol.hold("trimmed")
    on_torch.ask_too_much(options.quota)
    second = on_torch.train(model, optimizer, inputs, targets, 20)
    on_torch.settle()
    protocol.hold("after it")
    on_torch.end(first, second, kept[0].sum(dtype=torch.int64), *model.parameters())


main()
