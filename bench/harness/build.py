"""Finds the programs of a build, in the layout of scripts/build, of meson, of an installation or of tests/gpu/pack.
The root may also be the folder of `allot` itself."""

import glob
import os

# The place of each program in meson's build tree.
PLACES = {
    "allot": "src/cli",
    "allotd": "src/daemon",
    "allot-sim": "src/sim",
    "allot-load": "bench/load",
    "launch-cost": "bench",
    "call-cost": "bench",
    "start-cost": "bench",
    "peer-copy": "bench",
    "cluster-packing": "bench",
    "scheduler-scale": "bench",
    "gpu-progress": "tests/gpu",
    "gpu-memory": "tests/gpu",
    "gpu-checkpoint": "tests/gpu",
    "gpu-fuzz": "tests/gpu",
    "gpu-answers": "tests/gpu",
    "differential-calls": "tests/differential",
}

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Missing(Exception):
    """A part of the build is missing; the text says what to do."""


class Build:
    def __init__(self, root=None):
        self.root = os.path.abspath(root or os.path.join(REPOSITORY, "build"))

    def program(self, name):
        place = PLACES[name]
        for folder in ("", place, os.path.join("meson", place), os.path.join("../..", place),
                       "../libexec/allot"):
            path = os.path.join(self.root, folder, name)
            if os.access(path, os.X_OK) and os.path.isfile(path):
                return path
        raise Missing(f"{name} is not in {self.root}; run scripts/build, or name its folder "
                      "with --build")

    def sim_dir(self):
        """The folder of the simulated libcuda.so.1 and libnvidia-ml.so.1."""
        installed = glob.glob(os.path.join(self.root, "../lib*/**/allot/sim"), recursive=True)
        for folder in ("sim", "src/sim", "meson/src/sim", "../sim", *installed):
            path = os.path.join(self.root, folder)
            if os.path.exists(os.path.join(path, "libcuda.so.1")):
                return path
        raise Missing(f"the simulated GPU is not in {self.root}; run scripts/build")


def llm_server():
    return os.path.join(REPOSITORY, "bench", "load", "llm_server.py")


def torch_load():
    return os.path.join(REPOSITORY, "bench", "load", "torch_load.py")
