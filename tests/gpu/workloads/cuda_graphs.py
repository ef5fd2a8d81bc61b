"""CUDA graphs in PyTorch: a whole training step captured and replayed, and a module whose forward
and backward are graphs (make_graphed_callables)."""

import torch
import torch.nn.functional as F
from torch import nn

import on_torch
import protocol

STEPS = 50
BATCH, WIDTH, CLASSES = 256, 512, 100


def network():
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(),
                         nn.Linear(WIDTH, CLASSES)).to("cuda")


class CapturedStep:
    """The inputs and the loss have fixed addresses, which the graph reads and writes."""

    def __init__(self, model, inputs, targets):
        self.model, self.inputs, self.targets = model, inputs.clone(), targets.clone()
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self._step()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(self.graph):
            self.loss = self._step()

    def _step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(self.model(self.inputs), self.targets)
        loss.backward()
        self.optimizer.step()
        return loss

    def replay(self, steps):
        losses = []
        for step in range(steps):
            self.inputs.copy_(self.inputs.roll(step, dims=0))
            self.targets.copy_(self.targets.roll(step, dims=0))
            self.graph.replay()
            losses.append(self.loss.detach().clone())
        return torch.stack(losses)


def main():
    options = protocol.arguments(__doc__)
    on_torch.start()
    inputs, targets = on_torch.random(BATCH, WIDTH), on_torch.classes(BATCH, CLASSES)
    captured = CapturedStep(network(), inputs, targets)
    first = captured.replay(STEPS)

    model = network()
    graphed = torch.cuda.make_graphed_callables(model, (torch.randn_like(inputs),))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    second = on_torch.train(graphed, optimizer, inputs, targets, STEPS)
    on_torch.settle()
    protocol.hold()
    on_torch.ask_too_much(options.quota)
    third = captured.replay(STEPS)
    fourth = on_torch.train(graphed, optimizer, inputs, targets, STEPS)
    on_torch.end(first, second, third, fourth, *captured.model.parameters(), *model.parameters())


main()
