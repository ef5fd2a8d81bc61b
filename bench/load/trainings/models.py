"""The models, with random weights, and a batch of synthetic input for each, so nothing is downloaded."""

from dataclasses import dataclass
from typing import Callable

import torch
from torch import nn

VOCABULARY = 1000       # number of tokens, and of classes
WIDTH = 512
SEQUENCE = 128
SIDE = 224


class Gru(nn.Module):
    """Two GRU layers over a sequence of tokens, which launch many small kernels."""

    def __init__(self, vocabulary, width):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.gru = nn.GRU(width, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        states, _ = self.gru(self.embed(tokens))
        return self.head(states[:, -1])


class Transformer(nn.Module):
    """A small encoder that classifies sequences of tokens."""

    def __init__(self, vocabulary, width):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(width, nhead=8, dim_feedforward=4 * width,
                                           batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=4)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.head(self.encoder(self.embed(tokens)).mean(dim=1))


def of_torchvision(name):
    def make():
        import torchvision  # imported late, so that the other models do not need it

        return getattr(torchvision.models, name)(weights=None)
    return make


# Inputs are smaller on a CPU, where nothing is measured.
def make_images(batch, device):
    side = SIDE if device.type == "cuda" else SIDE // 4
    return torch.randn(batch, 3, side, side, device=device)


def make_tokens(batch, device):
    length = SEQUENCE if device.type == "cuda" else SEQUENCE // 16
    return torch.randint(VOCABULARY, (batch, length), device=device)


@dataclass(frozen=True)
class Model:
    make: Callable          # the module, on the CPU
    make_input: Callable    # of (batch, device)
    default_batch: int      # without --batch
    unit: str = ""          # of the input's size, if it is not obvious


MODELS = {
    "resnet18": Model(of_torchvision("resnet18"), make_images, 128),
    "transformer": Model(lambda: Transformer(VOCABULARY, WIDTH), make_tokens, 64, "tokens"),
    "gru": Model(lambda: Gru(VOCABULARY, WIDTH), make_tokens, 64, "tokens"),
    "shufflenet_v2": Model(of_torchvision("shufflenet_v2_x1_0"), make_images, 128),
    "mobilenet_v3": Model(of_torchvision("mobilenet_v3_large"), make_images, 64),
}
