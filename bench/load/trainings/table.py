"""The models that are trained and the batches that benches use, the larger one first. No PyTorch is
needed to read it."""

# With the larger batch the GPU sets the pace on an H200; with the smaller one, for all but ResNet18,
# the thread that launches the kernels is close to doing so.
BATCHES = {
    "resnet18": (128, 32),
    "transformer": (256, 64),
    "gru": (1024, 256),
    "shufflenet_v2": (512, 128),
    "mobilenet_v3": (256, 64),
}
