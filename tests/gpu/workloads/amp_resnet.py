"""torchvision's ResNet18, trained under autocast with a GradScaler."""

import torch
import torch.nn.functional as F
import torchvision

import on_torch
import protocol

STEPS = 15


def train(model, optimizer, scaler, images, labels):
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach().float())
    return torch.stack(losses)


def main():
    options = protocol.arguments(__doc__)
    on_torch.start()
    model = torchvision.models.resnet18(weights=None, num_classes=100).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    scaler = torch.amp.GradScaler("cuda")
    images, labels = on_torch.random(64, 3, 96, 96), on_torch.classes(64, 100)
    first = train(model, optimizer, scaler, images, labels)
    on_torch.settle()
    protocol.hold()
    on_torch.ask_too_much(options.quota)
    second = train(model, optimizer, scaler, images, labels)
    scale = torch.tensor(scaler.get_scale())
    on_torch.end(first, second, scale, *model.parameters())


main()
