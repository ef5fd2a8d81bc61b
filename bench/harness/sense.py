#!/usr/bin/env python3
"""Reads the GPU's sensors through NVML at even intervals, in a separate process, and prints each reading as a line of JSON.
GPM is read less often than the others. The last line has the cost of a call, and the sensors that the GPU lacks, with NVML's error.

    sense.py LIBRARY SECONDS INTERVAL_S
"""

import ctypes
import json
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from harness.nvml import Nvml, Unavailable      # noqa: E402

COST_CALLS = 200
NOT_FOUND = 6               # NVML_ERROR_NOT_FOUND: there is no newer sample
INSUFFICIENT_SIZE = 7       # NVML_ERROR_INSUFFICIENT_SIZE
SAMPLES_GPU = 1             # NVML_GPU_UTILIZATION_SAMPLES
GPM_METRICS = {1: "NVML GPM graphics", 2: "NVML GPM SM", 3: "NVML GPM SM occupancy"}
GPM_VERSION = 1
# nvml.h, nvmlGpmSampleGet: "The interval between two nvmlGpmSampleGet() calls should be greater than 100ms due to the internal
# sample refresh rate." After a shorter one, half of the readings are 0.
GPM_INTERVAL_S = 0.2


class ProcessSample(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("at_us", ctypes.c_ulonglong), ("sm", ctypes.c_uint),
                ("memory", ctypes.c_uint), ("encoder", ctypes.c_uint), ("decoder", ctypes.c_uint)]


class Sample(ctypes.Structure):
    _fields_ = [("at_us", ctypes.c_ulonglong), ("value", ctypes.c_ulonglong)]


class GpmSupport(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("supported", ctypes.c_uint)]


class GpmMetric(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint), ("result", ctypes.c_uint), ("value", ctypes.c_double),
                ("names", ctypes.c_char_p * 3)]


class GpmMetrics(ctypes.Structure):
    # Longer than the table of any NVML version; the library reads only `count` entries.
    _fields_ = [("version", ctypes.c_uint), ("count", ctypes.c_uint), ("first", ctypes.c_void_p),
                ("second", ctypes.c_void_p), ("metrics", GpmMetric * 512)]


class Sensors:
    def __init__(self, nvml):
        self.nvml = nvml
        self.last_us = 0
        self.gpm_before = None

    def device(self):
        """{"NVML device": percent}"""
        return {"NVML device": self.nvml.utilization_pct()}

    def samples(self):
        """The mean of the GPU's samples since the last reading; {} if there are none."""
        kind, count, rows = ctypes.c_uint(), ctypes.c_uint(120), (Sample * 120)()
        self.nvml.call("nvmlDeviceGetSamples", self.nvml.device, ctypes.c_uint(SAMPLES_GPU),
                        ctypes.c_ulonglong(self.last_us), ctypes.byref(kind), ctypes.byref(count),
                        rows)
        fresh = [row for row in rows[:count.value] if row.at_us > self.last_us]
        if not fresh:
            return {}
        self.last_us = max(row.at_us for row in fresh)
        return {"NVML samples": statistics.fmean(row.value & 0xffffffff for row in fresh)}

    def processes(self):
        """The sum over all processes that NVML lists."""
        since_us = int((time.time() - 1) * 1e6)
        count = ctypes.c_uint()

        def ask(rows):
            self.nvml.call("nvmlDeviceGetProcessUtilization", self.nvml.device, rows, ctypes.byref(count),
                           ctypes.c_ulonglong(since_us))
        try:
            ask(None)
        except Unavailable as error:    # NVML says how many rows it needs
            if error.result != INSUFFICIENT_SIZE:
                raise
        rows = (ProcessSample * count.value)()
        ask(rows)
        # Rows that NVML did not write have no time.
        used = sorted((row for row in rows[:count.value] if row.at_us > since_us), key=lambda row: row.at_us)
        return {"NVML processes": sum({row.pid: row.sm for row in used}.values())}

    def gpm(self):
        """The mean of each metric since the last reading; {} at the first one."""
        support = GpmSupport(GPM_VERSION, 0)
        self.nvml.call("nvmlGpmQueryDeviceSupport", self.nvml.device, ctypes.byref(support))
        if not support.supported:
            raise Unavailable("nvmlGpmQueryDeviceSupport: not supported by this GPU")
        sample = ctypes.c_void_p()
        self.nvml.call("nvmlGpmSampleAlloc", ctypes.byref(sample))
        self.nvml.call("nvmlGpmSampleGet", self.nvml.device, sample)
        before, self.gpm_before = self.gpm_before, sample
        if before is None:
            return {}
        query = GpmMetrics(GPM_VERSION, len(GPM_METRICS), before, sample)
        for i, number in enumerate(GPM_METRICS):
            query.metrics[i].id = number
        self.nvml.call("nvmlGpmMetricsGet", ctypes.byref(query))
        self.nvml.call("nvmlGpmSampleFree", before)
        return {GPM_METRICS[metric.id]: metric.value for metric in query.metrics[:len(GPM_METRICS)]
                if metric.result == 0}


def cost_us(sensor):
    times = []
    for _ in range(COST_CALLS):
        begin = time.perf_counter()
        try:
            sensor()
        except Unavailable:
            pass    # an error is an answer too, and costs as much
        times.append((time.perf_counter() - begin) * 1e6)
    return statistics.median(times)


def main():
    library, seconds, interval_s = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
    sensors = Sensors(Nvml(library=library))
    all_sensors = {"NVML device": sensors.device, "NVML samples": sensors.samples,
                   "NVML processes": sensors.processes, "NVML GPM": sensors.gpm}
    missing, working = {}, {}
    for name, read in all_sensors.items():
        try:
            read()
            working[name] = read
        except (Unavailable, AttributeError) as error:
            if getattr(error, "result", None) == NOT_FOUND:
                working[name] = read
            else:
                missing[name] = str(error)
    print(json.dumps({"ready": sorted(working)}), flush=True)
    next_at = time.monotonic()
    end = next_at + seconds
    gpm_at = next_at + GPM_INTERVAL_S       # the first sample was taken above
    while next_at < end:
        values = {}
        for name, read in working.items():
            if read == sensors.gpm:
                if time.monotonic() < gpm_at:
                    continue
                gpm_at = time.monotonic() + GPM_INTERVAL_S
            try:
                values.update(read())
            except Unavailable as error:
                if error.result != NOT_FOUND:
                    missing.setdefault(f"{name}, at times", str(error))
        print(json.dumps({"at": time.time(), "values": values}), flush=True)
        next_at += interval_s
        time.sleep(max(0.0, next_at - time.monotonic()))
    print(json.dumps({"cost_us": {name: cost_us(read) for name, read in working.items()},
                      "missing": missing}), flush=True)


if __name__ == "__main__":
    main()
