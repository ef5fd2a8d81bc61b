"""Reads the results in bench/results, for the pages that are generated from them."""

import glob
import json
import os

from .build import REPOSITORY

FOLDER = os.path.join(REPOSITORY, "bench", "results")


def load(simulated=False, sharing="time"):
    """{bench: [results]} of real or of simulated GPUs, measured with this --sharing: the newest result, or the newest of
    each part (--part). "path" in a result is its file."""
    found = {}
    # Sorted by date, with which names begin. Within a day, parts come before whole results.
    for path in sorted(glob.glob(os.path.join(FOLDER, "*.json"))):
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
        if result["simulated"] != simulated or result.get("sharing", "time") != sharing:
            continue
        result["path"] = path
        parts = found.setdefault(result["bench"], {})
        if "part" not in result:
            parts.clear()
        else:
            parts.pop(None, None)
        parts[result.get("part")] = result
    return {bench: list(parts.values()) for bench, parts in found.items()}
