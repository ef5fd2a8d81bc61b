"""Reads the results in bench/results, for the pages that are generated from them."""

import glob
import json
import os

from .build import REPOSITORY

FOLDER = os.path.join(REPOSITORY, "bench", "results")


def load(simulated=False, sharing="time"):
    """{bench: [results]} of real or of simulated GPUs, measured with this --sharing: the newest result, or the newest of
    each part (--part). Of the bench llm, which need not measure all ways at once (--ways), also those rows of older results
    that no newer one has. "path" in a result is its file."""
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
        older = parts.get(result.get("part"), []) if result["bench"] == "llm" else []
        parts[result.get("part")] = without_rows_of(older, result) + [result]
    return {bench: [result for part in parts.values() for result in part] for bench, parts in found.items()}


def bar_of(row):
    """The bar of a row in words, marked if the row did not pass; "" without one."""
    if "bar" not in row:
        return ""
    return row["bar"] + ("" if row["pass"] else ": **uncertain**" if "runs_needed" in row else ": **missed**")


def rival_name(result):
    """The name of the library that the figures `rival` are of."""
    return result.get("rival_source", "rival").split()[0].rstrip(",")


def rival_sources(results):
    """What the results that have figures `rival` say about these."""
    return sorted({result["rival_source"] for result in results if any("rival" in row for row in result["cases"])})


def without_rows_of(older, newer):
    names = {row["name"] for row in newer["cases"]}
    left = [{**result, "cases": [row for row in result["cases"] if row["name"] not in names]} for result in older]
    return [result for result in left if result["cases"]]
