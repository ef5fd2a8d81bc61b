"""Reads NVML outside of the tenants. It uses ctypes, so that it needs no package."""

import ctypes
import os


class Unavailable(Exception):
    def __init__(self, text, result=None):
        super().__init__(text)
        self.result = result    # NVML's error code; None if the library is missing


class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used_bytes", ctypes.c_ulonglong),
                ("gpu_instance", ctypes.c_uint), ("compute_instance", ctypes.c_uint)]


class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong),
                ("used", ctypes.c_ulonglong)]


class Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class Nvml:
    """One device. The NVML library stays loaded and initialized until the program ends."""

    def __init__(self, index=None, library="libnvidia-ml.so.1", uuid=None):
        """index: NVML's index; default: the device with this UUID or, without one, CUDA's first device."""
        try:
            self.lib = ctypes.CDLL(library)
        except OSError as error:
            raise Unavailable(str(error)) from error
        self.call("nvmlInit_v2")
        self.device = ctypes.c_void_p()
        first = uuid or os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0]
        if index is None and first.startswith(("GPU-", "MIG-")):
            self.call("nvmlDeviceGetHandleByUUID", first.encode(), ctypes.byref(self.device))
            return
        if index is None:
            index = int(first) if first.isdigit() else 0
        self.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index),
                   ctypes.byref(self.device))

    def call(self, name, *arguments):
        result = getattr(self.lib, name)(*arguments)
        if result != 0:
            raise Unavailable(f"{name}: NVML error {result}", result)

    def _text(self, name, *before):
        text = ctypes.create_string_buffer(96)
        self.call(name, *before, text, ctypes.c_uint(len(text)))
        return text.value.decode()

    def name(self):
        return self._text("nvmlDeviceGetName", self.device)

    def driver(self):
        return self._text("nvmlSystemGetDriverVersion")

    def count(self):
        count = ctypes.c_uint()
        self.call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        return count.value

    def memory(self):
        memory = Memory()
        self.call("nvmlDeviceGetMemoryInfo", self.device, ctypes.byref(memory))
        return memory

    def utilization_pct(self):
        """Utilization of the device over the driver's last sample period."""
        value = Utilization()
        self.call("nvmlDeviceGetUtilizationRates", self.device, ctypes.byref(value))
        return value.gpu

    def processes(self):
        """{pid: bytes}"""
        count = ctypes.c_uint(64)
        rows = (Process * count.value)()
        self.call("nvmlDeviceGetComputeRunningProcesses_v3", self.device, ctypes.byref(count),
                   rows)
        return {row.pid: row.used_bytes for row in rows[:count.value]}
