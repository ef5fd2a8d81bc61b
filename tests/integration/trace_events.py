"""Reads a file of `allot trace` and checks it against the Trace Event Format. Anything that Perfetto and chrome://tracing would
not show, or would show wrongly, is an error."""

import json
from collections import defaultdict

# Of each phase that is written: what an event of it must have beside what all have.
NEEDED = {"X": {"dur"}, "i": {"s"}, "C": {"args"}, "M": {"args"}}
ALLOWED = {"ph", "pid", "tid", "ts", "name", "cat", "args", "dur", "s"}
METADATA = {"process_name": "name", "thread_name": "name", "process_sort_index": "sort_index",
            "thread_sort_index": "sort_index"}
EPSILON_US = 0.002      # times are written in whole nanoseconds


def refuse_doubles(pairs):
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys)), f"a key twice: {keys}"
    return dict(pairs)


def refuse_constant(text):
    raise AssertionError(f"{text} is no JSON")


def check_event(event):
    assert isinstance(event, dict) and set(event) <= ALLOWED, event
    phase = event["ph"]
    assert phase in NEEDED and NEEDED[phase] <= set(event), event
    assert isinstance(event["name"], str) and event["name"], event
    for key in ("pid", "tid"):
        assert type(event[key]) is int and event[key] >= 0, event
    for key in {"ts", "dur"} & set(event):
        assert type(event[key]) in (int, float) and event[key] >= 0, event
    if phase == "C":
        assert event["args"] and all(type(value) in (int, float) for value in event["args"].values())
    if phase == "M":
        assert list(event["args"]) == [METADATA[event["name"]]], event
    if phase == "i":
        assert event["s"] == "t", event


def check_nesting(slices):
    """Slices of a track lie one behind or within the other."""
    open_until = []
    for begin, end, event in sorted(slices, key=lambda s: (s[0], -s[1])):
        while open_until and open_until[-1] <= begin + EPSILON_US:
            open_until.pop()
        assert not open_until or end <= open_until[-1] + EPSILON_US, \
            f"ends after what it is within, at {open_until[-1]}: {event}"
        open_until.append(end)


class Trace:
    """A trace that was read and is sound."""

    def __init__(self, text):
        whole = json.loads(text, object_pairs_hook=refuse_doubles, parse_constant=refuse_constant)
        assert set(whole) == {"displayTimeUnit", "traceEvents", "otherData"}
        assert whole["displayTimeUnit"] in ("ms", "ns")
        self.events = whole["traceEvents"]
        self.other = whole["otherData"]
        tracks, named = defaultdict(list), set()
        for event in self.events:
            check_event(event)
            if event["ph"] == "X":
                tracks[event["pid"], event["tid"]].append(
                    (event["ts"], event["ts"] + event["dur"], event))
            if event["name"] == "process_name":
                named.add(event["pid"])
        for slices in tracks.values():
            check_nesting(slices)
        assert {pid for pid, _ in tracks} <= named, "a process without a name"

    def of(self, category=None, name=None, phase=None):
        return [event for event in self.events
                if (category is None or event.get("cat") == category) and
                (name is None or event["name"] == name) and
                (phase is None or event["ph"] == phase)]

    def leases_of(self, tenant):
        """Leases of it that began in the trace."""
        return [event for event in self.of("lease", "lease")
                if event["args"]["tenant"] == tenant and "began_before" not in event["args"]]

    def name_of(self, pid, tid=None):
        kind = "process_name" if tid is None else "thread_name"
        return next(event["args"]["name"] for event in self.of(name=kind)
                    if event["pid"] == pid and tid in (None, event["tid"]))
