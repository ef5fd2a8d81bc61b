"""What a workload tells tests/gpu/run: JSON lines, as ../checks/pair.py has them."""

import argparse
import hashlib
import json
import os
import sys


def arguments(doc, *flags):
    """The quota's bytes (None without allot), and a truth value for each of the flags."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--quota", type=int, help="bytes; it then tries to pass them")
    for flag in flags:
        parser.add_argument(flag, action="store_true")
    return parser.parse_args()


def say(at, **more):
    print(json.dumps({"at": at, **more}), flush=True)


def hold(name=None, pids=None):
    """The GPU must be idle. Returns when the harness has looked."""
    say("hold", pids=pids or [os.getpid()], **({"name": name} if name else {}))
    sys.stdin.readline()


def ask_too_much(attempt, refusals, what, marks=("",)):
    """`attempt` must raise one of `refusals`, with one of `marks` in its text; any other exception
    is the program's end."""
    try:
        attempt()
    except refusals as error:
        text = " ".join(str(error).split())
        say("over", refused=any(mark in text for mark in marks),
            what=f"{what}: {type(error).__name__}: {text[:100]}")
    else:
        say("over", refused=False, what=f"{what}: got it")


def skip(why):
    say("skip", why=why)
    sys.exit(0)


def digest(*parts):
    """sha256 over bytes and NumPy arrays."""
    total = hashlib.sha256()
    for part in parts:
        total.update(part if isinstance(part, bytes) else part.tobytes())
    return total.hexdigest()


def end(*parts, **more):
    say("end", digest=digest(*parts), **more)
