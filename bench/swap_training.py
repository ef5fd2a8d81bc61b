#!/usr/bin/env python3
"""A training whose parameters fill so many GiB, all used and changed in each step: what it computed, how
fast, and how long its longest step took. Alone and beside another that does not fit on the card with it, the
losses are the same."""

import argparse
import json
import time

import torch

SIDE = 16384  # a parameter is a square of 1 GiB


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=int, default=20)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--wait", action="store_true",
                        help="say so when the memory is there, and begin when a line is read")
    options = parser.parse_args()
    torch.manual_seed(1)
    layers = [torch.randn(SIDE, SIDE, device="cuda") / SIDE**0.5 for _ in range(options.gib)]
    data = torch.randn(2048, SIDE, device="cuda")
    losses, longest = [], 0.0
    torch.cuda.synchronize()
    if options.wait:
        print("ready", flush=True)
        input()
    begin = time.monotonic()
    for _ in range(options.steps):
        start = time.monotonic()
        x = data
        for w in layers:
            y = torch.tanh(x @ w)
            w.add_(x[:, :1].mean() * 1e-4).mul_(0.9999)
            x = y
        losses.append(x.square().mean().item())
        longest = max(longest, time.monotonic() - start)
    took = time.monotonic() - begin
    print(json.dumps({"gib": options.gib, "steps_s": options.steps / took, "longest_step_s": longest,
                      "losses": losses}))


if __name__ == "__main__":
    main()
