"""A library of another project that somebody built and that limits CUDA programs by LD_PRELOAD. It is measured beside allot: the
same loads run without allot, with this library in place."""

import argparse
import hashlib
import os
import re
from dataclasses import dataclass, replace

from .job import Failed

PLACES = ("name", "memory_mib", "cores_pct")


def parse_environment(text):
    """NAME=VALUE,... as pairs."""
    pairs = [pair.partition("=")[::2] for pair in text.split(",")]
    for name, value in pairs:
        if not re.fullmatch(r"\w+", name) or set(re.findall(r"{(.*?)}", value)) - set(PLACES):
            raise argparse.ArgumentTypeError(f"'{name}={value}': not NAME=VALUE, in which only {{{'}, {'.join(PLACES)}}} are "
                                             "filled in")
    return tuple(pairs)


def parse_library(path):
    if not os.access(path, os.R_OK) or not os.path.isfile(path):
        raise argparse.ArgumentTypeError(f"'{path}': no such file, or it can't be read")
    return os.path.abspath(path)


@dataclass(frozen=True)
class Rival:
    library: str
    variables: tuple    # (name, value), with PLACES in braces

    def source(self):
        """What a result says about it."""
        with open(self.library, "rb") as file:
            return f"{os.path.basename(self.library)}, SHA-256 {hashlib.sha256(file.read()).hexdigest()}"

    def environment(self, name, options):
        """The environment in place of these options of allot run: --memory in GiB, and --cores."""
        limits = dict(zip(options[::2], options[1::2]))
        values = {"name": name, "memory_mib": 1024 * int(limits["--memory"].removesuffix("GiB")), "cores_pct": limits["--cores"]}
        filled = {variable: re.sub(r"{(\w+)}", lambda place: str(values[place[1]]), value) for variable, value in self.variables}
        return {**filled, "LD_PRELOAD": self.library}


def measured(bench, measure):
    """What measure() returns; None without --rival-library, or if it failed, which does not keep allot from being judged."""
    try:
        return measure() if bench.rival else None
    except Failed as error:
        bench.result.skip("--rival-library", str(error))
        return None


def shares(bench, loads, seconds):
    """The shares that these loads of allot's tenants get with --rival-library, in percent; None for each without it."""
    def measure():
        native = [replace(load, options=None, environment=bench.rival.environment(load.name, load.options)) for load in loads]
        return [outcome.share_pct for outcome in bench.loads.run(native, seconds)]
    return measured(bench, measure) or [None] * len(loads)
