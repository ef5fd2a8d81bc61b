"""The results that lie in bench/results, for the pages that are made from them."""

import glob
import json
import os

from .build import REPOSITORY

FOLDER = os.path.join(REPOSITORY, "bench", "results")


def load(simulated=False, sharing="time"):
    """{bench: [results]} of real GPUs, or of simulated ones, by that option of bench/run: the newest, or the
    newest of each of its parts. A result has its file as "path"."""
    found = {}
    # By date, since that is how names begin; of one day, parts before the whole.
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
