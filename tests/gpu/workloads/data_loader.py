"""A DataLoader with 4 workers, forked after the GPU is in use, and pinned memory."""

import numpy
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import on_torch
import protocol


class Numbers(Dataset):
    """Each item from its own seed, so that no worker's turn changes it."""

    def __len__(self):
        return 2048

    def __getitem__(self, index):
        generator = numpy.random.default_rng(index)
        return generator.standard_normal(512, dtype=numpy.float32), index % 100


def epoch(model, optimizer, loader):
    losses = []
    for inputs, targets in loader:
        losses.append(on_torch.train(model, optimizer, inputs.to("cuda", non_blocking=True),
                                     targets.to("cuda", non_blocking=True), 1))
    return torch.cat(losses)


def main():
    options = protocol.arguments(__doc__)
    on_torch.start()
    model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 100)).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    on_torch.settle()
    loader = DataLoader(Numbers(), batch_size=64, num_workers=4, pin_memory=True,
                        persistent_workers=True, multiprocessing_context="fork",
                        shuffle=True, generator=torch.Generator().manual_seed(on_torch.SEED))
    first = epoch(model, optimizer, loader)
    on_torch.settle()
    protocol.hold("workers alive")
    on_torch.ask_too_much(options.quota)
    second = epoch(model, optimizer, loader)
    on_torch.end(first, second, *model.parameters())


main()
