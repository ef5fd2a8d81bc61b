"""PyTorch's expandable segments: addresses reserved far ahead, memory mapped into them and unmapped
again, as tensors come and go."""

import os

# The newer name, and the one that older versions know.
os.environ["PYTORCH_ALLOC_CONF"] = os.environ["PYTORCH_CUDA_ALLOC_CONF"] = \
    "expandable_segments:True"

import sys                              # noqa: E402

import torch                            # noqa: E402

import on_torch                         # noqa: E402
import protocol                         # noqa: E402

MIB = 1 << 20
STEPS_MIB = (40, 72, 100, 200, 312, 400)


def filled(mib, value):
    return torch.full((mib * MIB // 4,), value, dtype=torch.int32, device="cuda")


def main():
    options = protocol.arguments(__doc__)
    on_torch.start()
    kept = {mib: filled(mib, mib) for mib in STEPS_MIB}
    on_torch.settle()
    if not all(segment["is_expandable"] for segment in torch.cuda.memory_snapshot()):
        sys.exit("the segments are not expandable")
    protocol.hold("grown")
    for mib in STEPS_MIB[1::2]:
        del kept[mib]
    on_torch.settle()
    torch.cuda.empty_cache()            # unmaps the holes
    reserved = torch.cuda.memory_reserved()
    if reserved >= sum(STEPS_MIB) * MIB:
        sys.exit(f"nothing was unmapped: {reserved} bytes are reserved")
    protocol.hold("holes unmapped")
    kept.update({mib: filled(mib, -mib) for mib in (600, 900)})     # fills holes and grows
    on_torch.settle()
    protocol.hold("grown again")
    on_torch.ask_too_much(options.quota)
    again = filled(500, 5)
    on_torch.settle()
    protocol.hold("after it")
    on_torch.end(*(t.sum(dtype=torch.int64) for t in (*kept.values(), again)))


main()
