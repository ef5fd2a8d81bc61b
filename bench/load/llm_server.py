#!/usr/bin/env python3
"""A small LLM server: a decoder with random weights that answers requests of a fixed length.

A request is a prefill, then decode steps of one token each. A step decodes all resident requests at once, and ends with a copy
of the sampled tokens to the host. Weights and prompts are random, so nothing is downloaded.

With --serve the process keeps running and obeys commands on its input, one a line. It answers each with a line of JSON:

    serve SECONDS AT FILE               from the Unix time AT on, closed loop: a request that ends is
                                        replaced at once
    serve SECONDS AT FILE RATE SEED     open loop: RATE requests a second arrive, at random times (Poisson)

FILE gets JSON lines, in seconds from AT by time.perf_counter():

    {"step": [BEGIN, END], "tokens": N}                 a decode step of N requests
    {"request": ARRIVED, "first": S, "end": S}          null: not before the end of the run

Without --serve it serves a closed loop for --seconds, and prints a summary.
"""

import argparse
import json
import random
import sys
import time
from collections import deque
from dataclasses import dataclass

try:
    import torch
    from torch.nn import functional
except ImportError:     # the schedule and the loop work without it
    torch = None


@dataclass(frozen=True)
class Geometry:
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_size: int
    mlp: int
    vocabulary: int
    norm_heads: bool = False    # queries and keys are normalized, as in Qwen3


GEOMETRIES = {
    "4b": Geometry(36, 2560, 32, 8, 128, 9728, 151936, True),       # Qwen3-4B
    "1b": Geometry(16, 2048, 32, 8, 64, 8192, 128256),              # Llama 3.2 1B
    "small": Geometry(8, 1024, 16, 8, 64, 2816, 32000),
    "tiny": Geometry(2, 64, 4, 2, 16, 128, 512, True),              # for trying the program on a CPU
}


# ---- the schedule

def poisson_arrivals(rate, seconds, seed):
    """Arrival times within `seconds`, with independent exponential gaps of the mean 1 / rate."""
    generator = random.Random(seed)
    times, t = [], generator.expovariate(rate)
    while t < seconds:
        times.append(t)
        t += generator.expovariate(rate)
    return times


class Request:
    def __init__(self, arrived, tokens):
        self.arrived = arrived
        self.left = tokens
        self.first = self.end = None


class Batch:
    """Continuous batching with `slots` slots. A new request is prefilled before the next step. engine: has prefill(slot) and
    decode(), which return when their tokens are on the host. arrivals: None for a closed loop."""

    def __init__(self, engine, slots, tokens, arrivals=None, now=time.perf_counter, sleep=time.sleep):
        self.engine, self.tokens, self.now, self.sleep = engine, tokens, now, sleep
        self.free = deque(range(slots))
        self.active = {}        # slot: request
        self.is_closed = arrivals is None
        if self.is_closed:
            # The first requests have different lengths, so that later ones do not all end in the same step.
            self.waiting = deque(Request(0.0, max(1, tokens * (i + 1) // slots)) for i in range(slots))
        else:
            self.waiting = deque(Request(at, tokens) for at in arrivals)
        self.steps = []         # (begin, end, tokens)
        self.requests = []      # ended or not, in the order of their prefill

    def serve(self, begin, seconds):
        """Serves for `seconds`. Times are counted from `begin`, which is a value of self.now."""
        while (t := self.now() - begin) < seconds:
            if self.free and self.waiting and self.waiting[0].arrived <= t:
                self._prefill(self.waiting.popleft(), begin)
            elif self.active:
                self._decode(begin)
            else:
                due = self.waiting[0].arrived if self.waiting else seconds
                self.sleep(max(0.0, min(due, seconds) - t))
        self.requests += [r for r in self.waiting if r.arrived < seconds]

    def _prefill(self, request, begin):
        slot = self.free.popleft()
        self.requests.append(request)
        self.engine.prefill(slot)
        request.first = self.now() - begin
        self.active[slot] = request
        self._count_token(slot, request.first)

    def _decode(self, begin):
        start = self.now() - begin
        self.engine.decode()
        end = self.now() - begin
        self.steps.append((start, end, len(self.active)))
        for slot in list(self.active):
            self._count_token(slot, end)

    def _count_token(self, slot, at):
        request = self.active[slot]
        request.left -= 1
        if request.left > 0:
            return
        request.end = at
        del self.active[slot]
        self.free.append(slot)
        if self.is_closed:
            self.waiting.append(Request(at, self.tokens))

    def write(self, path):
        def rounded(value):
            return None if value is None else round(value, 6)
        with open(path, "w", encoding="utf-8") as file:
            for begin, end, tokens in self.steps:
                file.write(json.dumps({"step": [rounded(begin), rounded(end)], "tokens": tokens}) + "\n")
            for r in self.requests:
                file.write(json.dumps({"request": rounded(r.arrived), "first": rounded(r.first),
                                       "end": rounded(r.end)}) + "\n")


# ---- the decoder

class Decoder:
    """Weights and a static cache of keys and values, for `slots` requests of `prompt` and `tokens` tokens."""

    def __init__(self, geometry, slots, prompt, tokens, device):
        self.geometry = g = geometry
        self.prompt = prompt
        self.length = -(-(prompt + tokens) // 8) * 8
        self.type = torch.bfloat16

        def weight(*shape):
            return torch.empty(shape, dtype=self.type, device=device).normal_(0, shape[-1] ** -0.5)

        def ones(size):
            return torch.ones(size, dtype=self.type, device=device)
        self.embed = weight(g.vocabulary, g.hidden)
        self.layers = [{
            "norm": ones(g.hidden), "qkv": weight((g.heads + 2 * g.kv_heads) * g.head_size, g.hidden),
            "head_norm": ones(g.head_size), "out": weight(g.hidden, g.heads * g.head_size),
            "mlp_norm": ones(g.hidden), "up": weight(2 * g.mlp, g.hidden), "down": weight(g.hidden, g.mlp),
            "keys": torch.zeros(slots, g.kv_heads, self.length, g.head_size, dtype=self.type, device=device),
            "values": torch.zeros(slots, g.kv_heads, self.length, g.head_size, dtype=self.type, device=device),
        } for _ in range(g.layers)]
        self.norm = ones(g.hidden)
        angles = torch.outer(torch.arange(self.length, device=device, dtype=torch.float32),
                             1e6 ** (-torch.arange(0, g.head_size, 2, device=device) / g.head_size)).repeat(1, 2)
        self.cos, self.sin = angles.cos().to(self.type), angles.sin().to(self.type)
        self.input = torch.randint(g.vocabulary, (prompt,), device=device)
        self.slots = torch.arange(slots, device=device)
        self.tokens = torch.zeros(slots, dtype=torch.int64, device=device)      # the last one of each
        self.positions = torch.full((slots,), prompt, device=device)            # of the next one of each
        self.columns = torch.arange(self.length, device=device)

    def _heads(self, layer, x, cos, sin):
        """Queries, keys and values of x (rows, hidden), each (rows, heads, head size), rotated."""
        g = self.geometry
        rotated = g.heads + g.kv_heads
        heads = functional.linear(functional.rms_norm(x, (g.hidden,), layer["norm"]), layer["qkv"])
        heads = heads.view(-1, rotated + g.kv_heads, g.head_size)
        both = heads[:, :rotated]
        if g.norm_heads:
            both = functional.rms_norm(both, (g.head_size,), layer["head_norm"])
        first, second = both.chunk(2, dim=-1)
        both = both * cos + torch.cat((-second, first), dim=-1) * sin
        return both[:, :g.heads], both[:, g.heads:], heads[:, rotated:]

    def _after_attention(self, layer, x, attended):
        """The part of a layer after attention."""
        x = x + functional.linear(attended, layer["out"])
        y = functional.linear(functional.rms_norm(x, (self.geometry.hidden,), layer["mlp_norm"]), layer["up"])
        gate, up = y.chunk(2, dim=-1)
        return x + functional.linear(functional.silu(gate) * up, layer["down"])

    def _sample(self, x):
        """The most probable token of each row."""
        x = functional.rms_norm(x, (self.geometry.hidden,), self.norm)
        return functional.linear(x, self.embed).argmax(dim=-1)

    def prefill(self, slot):
        """Launches the prompt of one request; its first token goes to self.tokens."""
        g, group = self.geometry, self.geometry.heads // self.geometry.kv_heads
        cos, sin = self.cos[:self.prompt, None], self.sin[:self.prompt, None]
        x = self.embed[self.input]
        for layer in self.layers:
            q, k, v = (part.transpose(0, 1) for part in self._heads(layer, x, cos, sin))
            layer["keys"][slot, :, :self.prompt] = k
            layer["values"][slot, :, :self.prompt] = v
            k, v = (part.repeat_interleave(group, dim=0) for part in (k, v))
            y = functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
            x = self._after_attention(layer, x, y.transpose(0, 1).reshape(-1, g.heads * g.head_size))
        self.tokens[slot] = self._sample(x[-1])
        self.positions[slot] = self.prompt

    def step(self):
        """Launches one token of every slot. Needs nothing from the host, so it can be captured as a CUDA graph."""
        g = self.geometry
        cos, sin = self.cos[self.positions][:, None], self.sin[self.positions][:, None]
        past = torch.zeros(len(self.slots), 1, 1, self.length, dtype=self.type, device=self.slots.device)
        past.masked_fill_(self.columns > self.positions.view(-1, 1, 1, 1), float("-inf"))
        x = self.embed[self.tokens]
        for layer in self.layers:
            q, k, v = self._heads(layer, x, cos, sin)
            layer["keys"][self.slots, :, self.positions] = k
            layer["values"][self.slots, :, self.positions] = v
            # Queries that share a key head are the rows of one matrix product.
            q = q.reshape(len(self.slots), g.kv_heads, -1, g.head_size) * g.head_size ** -0.5
            weights = torch.softmax(q @ layer["keys"].transpose(2, 3) + past, dim=-1)
            x = self._after_attention(layer, x, (weights @ layer["values"]).reshape(-1, g.heads * g.head_size))
        self.tokens.copy_(self._sample(x))
        self.positions.copy_((self.positions + 1).clamp_(max=self.length - 1))


class Engine:
    """A decoder whose tokens are copied to the host after each step."""

    def __init__(self, decoder, has_graph):
        self.decoder = decoder
        self.launch = decoder.step
        self.prefill(0)
        self.decode()       # loads libraries and allocates memory before the capture
        if has_graph:
            self.launch = capture(decoder.step)
        for slot in range(len(decoder.slots)):
            self.prefill(slot)
        for _ in range(3):
            self.decode()

    def prefill(self, slot):
        with torch.inference_mode():
            self.decoder.prefill(slot)
            return self.decoder.tokens[slot].item()

    def decode(self):
        with torch.inference_mode():
            self.launch()
            return self.decoder.tokens.tolist()


def capture(step):
    """Captures the step as a CUDA graph; returns a function that replays it."""
    with torch.inference_mode():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
    return graph.replay


# ---- the program

def wait_until(at):
    """Waits until this Unix time; returns it as a time of time.perf_counter()."""
    begin = time.perf_counter() + at - time.time()
    while (left_s := begin - time.perf_counter()) > 0:
        time.sleep(left_s)
    return begin


class Server:
    """Obeys the commands of the input with an engine."""

    def __init__(self, engine, slots, tokens):
        self.engine, self.slots, self.tokens = engine, slots, tokens

    def obey(self, line):
        """The answer, as a dict."""
        try:
            name, seconds, at, path, *open_loop = line.split()
            seconds, at = float(seconds), float(at)
            arrivals = poisson_arrivals(float(open_loop[0]), seconds, int(open_loop[1])) if open_loop else None
            if name != "serve" or len(open_loop) not in (0, 2):
                raise ValueError
        except (ValueError, IndexError, ZeroDivisionError):
            return {"refused": f"'{line.strip()}': not serve SECONDS AT FILE [RATE SEED]"}
        late_s = max(0.0, time.time() - at)
        batch = Batch(self.engine, self.slots, self.tokens, arrivals)
        batch.serve(wait_until(at), seconds)
        batch.write(path)
        return {"steps": len(batch.steps), "requests": len(batch.requests), "late_s": round(late_s, 4)}


def parser():
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("--geometry", choices=GEOMETRIES, default="4b")
    parse.add_argument("--slots", type=int, default=8, help="requests at once (%(default)s)")
    parse.add_argument("--prompt", type=int, default=512, help="tokens of a prompt (%(default)s)")
    parse.add_argument("--tokens", type=int, default=64, help="tokens of an answer (%(default)s)")
    parse.add_argument("--eager", action="store_true", help="decode without a CUDA graph")
    parse.add_argument("--serve", action="store_true", help="obey commands on the input, one a line")
    parse.add_argument("--seconds", type=float, default=5)
    parse.add_argument("--device", default="cuda", help="cpu is only for trying the program, with --geometry tiny")
    return parse


def run(options, engine):
    """`engine`: made with these options, and warm."""
    server = Server(engine, options.slots, options.tokens)
    if not options.serve:
        batch = Batch(engine, options.slots, options.tokens)
        batch.serve(time.perf_counter(), options.seconds)
        took_ms = sorted(1e3 * (end - begin) for begin, end, _ in batch.steps)
        tokens = sum(n for *_, n in batch.steps) + sum(r.first is not None for r in batch.requests)
        print(json.dumps({"tokens_s": round(tokens / options.seconds, 1), "steps": len(took_ms),
                          "step_ms_median": round(took_ms[len(took_ms) // 2], 3), "step_ms_max": round(took_ms[-1], 3)}))
        return
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        if line.strip():
            print(json.dumps(server.obey(line)), flush=True)


def main():
    options = parser().parse_args()
    if torch is None:
        sys.exit("llm_server: PyTorch is not installed")
    torch.manual_seed(1)
    is_cpu = options.device == "cpu"
    decoder = Decoder(GEOMETRIES["tiny" if is_cpu else options.geometry], options.slots, options.prompt,
                      options.tokens, options.device)
    run(options, Engine(decoder, not options.eager and not is_cpu))


if __name__ == "__main__":
    main()
