"""The models that are trained and the batches that benches use, the larger one first. No PyTorch is
needed to read it."""

# The larger one is meant to keep an H200 busy; with the smaller one the thread that launches the
# kernels may set the pace.
BATCHES = {
    "resnet18": (128, 32),
    "transformer": (256, 64),
    "gru": (1024, 256),
    "shufflenet_v2": (512, 128),
    "mobilenet_v3": (256, 64),
}
