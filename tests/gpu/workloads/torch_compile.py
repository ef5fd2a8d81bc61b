"""torch.compile: Inductor's Triton kernels, forward and backward, and a Triton kernel of the
program's own. Everything is compiled anew, in a folder of this run."""

import atexit
import os
import shutil
import tempfile

# Read when PyTorch and Triton are imported.
FOLDER = tempfile.mkdtemp(prefix="allot-compile-")
os.environ.update(TORCHINDUCTOR_CACHE_DIR=os.path.join(FOLDER, "inductor"),
                  TRITON_CACHE_DIR=os.path.join(FOLDER, "triton"),
                  TORCHINDUCTOR_COMPILE_THREADS="4")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)

import torch                                    # noqa: E402
import torch._inductor.config as inductor       # noqa: E402
import torch.nn.functional as F                 # noqa: E402
import triton                                   # noqa: E402
import triton.language as tl                    # noqa: E402
from torch import nn                            # noqa: E402

import on_torch                                 # noqa: E402
import protocol                                 # noqa: E402

WIDTH = 256


@triton.jit
def scaled_sum(a, b, out, count, factor, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < count
    tl.store(out + at, tl.load(a + at, mask=inside) + factor * tl.load(b + at, mask=inside),
             mask=inside)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, 100)

    def forward(self, x):
        x = x + self.down(F.gelu(self.up(self.norm(x))))
        return self.head(torch.softmax(x, dim=-1) * x)


def main():
    options = protocol.arguments(__doc__)
    if not any(map(shutil.which, ("cc", "gcc", "clang"))) and not os.environ.get("CC"):
        protocol.skip("Triton needs a C compiler")
    if hasattr(inductor, "deterministic"):
        inductor.deterministic = True           # no choice of a kernel by measured time
    on_torch.start()
    model = Net().to("cuda")
    compiled = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs, targets = on_torch.random(512, WIDTH), on_torch.classes(512, 100)
    first = on_torch.train(compiled, optimizer, inputs, targets, 20)
    other = on_torch.random(512, WIDTH, seed=7)
    out = torch.empty_like(other)
    scaled_sum[(triton.cdiv(out.numel(), 1024),)](inputs, other, out, out.numel(), 0.5, block=1024)
    on_torch.settle()
    protocol.hold()
    on_torch.ask_too_much(options.quota)
    second = on_torch.train(compiled, optimizer, inputs, targets, 20)
    on_torch.end(first, second, out, *model.parameters())


main()
