"""PyTorch, eager: a small residual network is trained with momentum, before and after a refusal."""

import torch
from torch import nn

import on_torch
import protocol

STEPS = 20


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        return torch.relu(x + self.body(x))


def main():
    options = protocol.arguments(__doc__)
    on_torch.start()
    model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), Block(32), nn.MaxPool2d(2), Block(32),
                          nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 8 * 8, 100)).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images = on_torch.random(256, 3, 32, 32)
    labels = on_torch.classes(256, 100)
    first = on_torch.train(model, optimizer, images, labels, STEPS)
    on_torch.settle()
    protocol.hold()
    on_torch.ask_too_much(options.quota)
    second = on_torch.train(model, optimizer, images, labels, STEPS)
    on_torch.end(first, second, *model.parameters())


main()
