"""The figures of an LLM server, computed from the events that it wrote (bench/load/llm_server.py)."""

import bisect
import statistics

from harness import stats
from harness.job import Failed

MS = 1e3


def server_figures(lines, begin, end):
    """The figures of a server, from its events between `begin` and `end`. A request without a first token counts with the time
    that it has waited at the end of the events."""
    steps = [(*line["step"], line["tokens"]) for line in lines if "step" in line]
    requests = [line for line in lines if "request" in line]
    firsts = [line["first"] for line in requests if line["first"] is not None]
    last = max([*firsts, *(step[1] for step in steps)], default=end)
    took_ms = [MS * (until - since) for since, until, _ in steps if begin <= until < end]
    arrived = [line for line in requests if begin <= line["request"] < end]
    first_ms = [MS * ((last if line["first"] is None else line["first"]) - line["request"]) for line in arrived]
    if not took_ms or not first_ms:
        raise Failed(f"{len(took_ms)} steps and {len(first_ms)} requests in a window; take a longer one (--seconds)")
    tokens = sum(n for _, until, n in steps if begin <= until < end) + sum(begin <= first < end for first in firsts)
    prefill_ms = [MS * (until - since) for since, until in prefills(lines)]
    usual = {"step_p50": stats.percentile(took_ms, 50), "prefill_p50": statistics.median(prefill_ms)}
    return {"tokens_s": tokens / (end - begin), **usual, "busy": share_of(lines, begin, end, usual),
            "step_p99": stats.percentile(took_ms, 99), "step_max": max(took_ms), "first_p50": stats.percentile(first_ms, 50), "first_p99": stats.percentile(first_ms, 99),
            "unserved": sum(line["first"] is None for line in arrived)}


def prefills(lines):
    """[(begin, end)] of each prefill, for a server that does one thing at a time: a prefill begins when its request arrives
    or, if that is later, when the work before it has ended."""
    steps = [line["step"][1] for line in lines if "step" in line]
    requests = sorted((line["first"], line["request"]) for line in lines if line.get("first") is not None)
    ends = sorted([*steps, *(first for first, _ in requests)])
    return [(max(ends[bisect.bisect_left(ends, first) - 1] if first > ends[0] else 0.0, arrived), first)
            for first, arrived in requests]


def share_of(lines, begin, end, alone):
    """The time that the server's work would take alone, over the time from `begin` to `end`; 1 is as much as it can use."""
    def within(since, until):
        return max(0.0, min(until, end) - max(since, begin)) / max(until - since, 1e-9)
    work_ms = (sum(within(*line["step"]) for line in lines if "step" in line) * alone["step_p50"] +
               sum(within(*one) for one in prefills(lines)) * alone["prefill_p50"])
    return work_ms / MS / (end - begin)
