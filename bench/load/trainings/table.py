"""The models that are trained, and the two batches that benches use, the larger one first. Needs no PyTorch."""

# The larger batch should keep an H200 busy. With the smaller one, the launching thread may be the bottleneck.
BATCHES = {
    "resnet18": (128, 32),
    "transformer": (256, 64),
    "gru": (1024, 256),
    "shufflenet_v2": (512, 128),
    "mobilenet_v3": (256, 64),
}
