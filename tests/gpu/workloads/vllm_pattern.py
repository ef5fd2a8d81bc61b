"""vLLM's way of using a GPU: a buffer shared with another process by an IPC handle (custom
all-reduce), a profile run, a key-value cache of what is left of 90 % of the card, CUDA graphs for
several batch sizes, and a sleep in which weights and cache leave the card while their addresses
stay (CuMemAllocator)."""

import os
import subprocess
import sys

import torch

import on_torch
import protocol
from driver import Mapped, OutOfMemory, call

MIB = 1 << 20
UTILIZATION = 0.9
NATIVE_MOST = 16384 * MIB       # the native run need not fill a large card
SHARED = 8 * MIB
LAYERS, HEADS, DEPTH = 4, 8, 64
WIDTH = HEADS * DEPTH
VOCABULARY = 4096
BLOCK_TOKENS, BLOCKS_EACH = 16, 4
BATCHES = (1, 2, 4, 8)
STEPS = 32
PROFILE_TOKENS = 4096


class Sleeper:
    """Tensors in memory that can leave the card and come back to the same addresses."""

    def __init__(self):
        self.parts = []     # (memory, its tensor of bytes, whether the content is kept)

    def tensor(self, shape, keep):
        count = 2
        for size in shape:
            count *= size
        memory = Mapped(count)
        memory.__cuda_array_interface__ = {"shape": (count,), "typestr": "|u1", "strides": None,
                                           "data": (int(memory.address), False), "version": 3}
        raw = torch.as_tensor(memory, device="cuda")
        self.parts.append((memory, raw, keep))
        return raw.view(torch.bfloat16).view(shape)

    def sleep(self):
        self.saved = [raw.to("cpu").pin_memory() if keep else None for _, raw, keep in self.parts]
        torch.cuda.synchronize()
        for memory, _, _ in self.parts:
            memory.unmap()
        torch.cuda.empty_cache()

    def wake(self):
        for (memory, raw, _), saved in zip(self.parts, self.saved):
            memory.map()
            raw.zero_() if saved is None else raw.copy_(saved)
        torch.cuda.synchronize()


class Model:
    """A small decoder; attention reads a sequence's keys and values through its block table."""

    def __init__(self, sleeper):
        def weight(seed, *shape):
            tensor = sleeper.tensor(shape, keep=True)
            tensor.copy_(on_torch.random(*shape, seed=seed) * shape[-1] ** -0.5)
            return tensor

        self.embed = weight(1, VOCABULARY, WIDTH)
        self.layers = [[weight(10 * layer + index, *shape) for index, shape in
                        enumerate([(WIDTH, WIDTH)] * 4 + [(WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)])]
                       for layer in range(1, LAYERS + 1)]

    def step(self, tokens, slots, table, lengths, caches):
        """One token of each sequence. `caches` None: the profile run, without attention's past."""
        x = self.embed[tokens]
        for index, (q, k, v, out, up, down) in enumerate(self.layers):
            y = torch.nn.functional.rms_norm(x, (WIDTH,))
            heads = [(y @ w).view(-1, HEADS, DEPTH) for w in (q, k, v)]
            x = x + self._attend(heads, slots, table, lengths, caches and caches[index]) @ out
            x = x + torch.relu(torch.nn.functional.rms_norm(x, (WIDTH,)) @ up) @ down
        return x @ self.embed.t()

    @staticmethod
    def _attend(heads, slots, table, lengths, cache):
        query, key, value = heads
        if cache is None:
            return (query * key + value).reshape(-1, WIDTH)
        for half, new in zip(cache, (key, value)):
            half.view(-1, HEADS, DEPTH).index_copy_(0, slots, new)
        keys, values = (half[table].view(len(slots), -1, HEADS, DEPTH) for half in cache)
        scores = torch.einsum("bhd,bthd->bht", query, keys).float() * DEPTH ** -0.5
        past = torch.arange(keys.shape[1], device=keys.device)[None, :] < lengths[:, None]
        scores = scores.masked_fill(~past[:, None, :], float("-inf"))
        weights = torch.softmax(scores, dim=-1).to(values.dtype)
        return torch.einsum("bht,bthd->bhd", weights, values).reshape(-1, WIDTH)


def capture(step):
    """The step as a graph: a function that replays it."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


class Decoder:
    """One batch size: inputs and outputs at fixed addresses, and the graph that uses them."""

    def __init__(self, model, batch, caches, blocks):
        def numbers():
            return torch.zeros(batch, dtype=torch.int64, device="cuda")

        # From one end of the cache to the other, so that all of it must be there.
        table = torch.linspace(0, blocks - 1, batch * BLOCKS_EACH, dtype=torch.float64).long()
        self.table = table.view(batch, BLOCKS_EACH).to("cuda")
        self.tokens, self.slots, self.lengths = numbers(), numbers(), numbers() + 1
        self.logits = torch.zeros(batch, VOCABULARY, dtype=torch.bfloat16, device="cuda")
        self.replay = capture(lambda: self.logits.copy_(model.step(
            self.tokens, self.slots, self.table, self.lengths, caches)))

    def generate(self):
        """Greedily, from a token of each sequence's own; what was chosen, and the last logits."""
        self.tokens.copy_(torch.arange(len(self.tokens)) + 1)
        chosen = []
        for step in range(STEPS):
            block = self.table[:, step // BLOCK_TOKENS]
            self.slots.copy_(block * BLOCK_TOKENS + step % BLOCK_TOKENS)
            self.lengths.fill_(step + 1)
            self.replay()
            self.tokens.copy_(self.logits.argmax(dim=-1))
            chosen.append(self.tokens.clone())
        return [torch.stack(chosen), self.logits.float()]


def share():
    """As custom all-reduce does: memory of its own that another process opens and writes to."""
    torch.zeros(1, device="cuda")       # its context is there, and current
    on_torch.settle()
    address = call("cuMemAlloc", SHARED)
    handle = call("cuIpcGetMemHandle", address)
    peer = subprocess.Popen(
        [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "ipc_peer.py")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    peer.stdin.write(bytes(handle.reserved).hex() + "\n")
    peer.stdin.flush()
    if peer.stdout.readline() != "written\n":
        sys.exit(f"the peer ended with status {peer.wait()}")
    protocol.hold("shared with a peer", pids=[os.getpid(), peer.pid])
    peer.communicate("on\n")
    if peer.returncode != 0:
        sys.exit(f"the peer ended with status {peer.returncode}")
    seen = bytearray(1 << 20)
    call("cuMemcpyDtoH", seen, address, len(seen))
    call("cuMemFree", address)
    return bytes(seen)


def bytes_for_cache(model, quota):
    """What is left of 90 % of the card behind weights, context and a step at its largest."""
    free, total = torch.cuda.mem_get_info()
    if quota is not None and total > quota:
        sys.exit(f"the card seems to have {total} bytes, the quota is {quota}")
    if free < UTILIZATION * total - 256 * MIB:      # of which the weights are a part
        sys.exit(f"only {free} of {total} bytes are free at the start")
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    tokens = torch.zeros(PROFILE_TOKENS, dtype=torch.int64, device="cuda")
    model.step(tokens, None, None, None, None)
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - before
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    used = total - free + peak
    limit = total if quota is not None else min(total, NATIVE_MOST)
    return int(limit * UTILIZATION) - used


def main():
    options = protocol.arguments(__doc__)
    on_torch.start()
    torch.use_deterministic_algorithms(False)       # no two writes have one address here
    shared = share()
    sleeper = Sleeper()
    model = Model(sleeper)
    with torch.inference_mode():
        block_bytes = 2 * BLOCK_TOKENS * WIDTH * 2
        blocks = bytes_for_cache(model, options.quota) // LAYERS // block_bytes
        caches = [sleeper.tensor((2, blocks, BLOCK_TOKENS, HEADS, DEPTH), keep=False)
                  for _ in range(LAYERS)]
        for cache in caches:
            cache.zero_()
        decoders = [Decoder(model, batch, caches, blocks) for batch in reversed(BATCHES)]
        first = [part for decoder in decoders for part in decoder.generate()]
        on_torch.settle()
        protocol.hold("serving")
        if options.quota is not None:
            protocol.ask_too_much(lambda: Mapped(options.quota), OutOfMemory, "cuMemCreate")
        on_torch.ask_too_much(options.quota)
        sleeper.sleep()
        protocol.hold("asleep")
        sleeper.wake()
        protocol.hold("awake")
        second = [part for decoder in decoders for part in decoder.generate()]
        if not all(torch.equal(a, b) for a, b in zip(first, second)):
            sys.exit("not the same answers after the sleep")
    protocol.end(shared, *on_torch.bytes_of(*first))


main()
