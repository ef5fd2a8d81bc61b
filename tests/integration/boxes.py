"""The bench's test containers (bench/harness/boxes.py) on a simulated machine, with the programs of the tests' build."""

import importlib.util
import subprocess

from machines import BUILD, ROOT

_spec = importlib.util.spec_from_file_location("harness_boxes", ROOT / "bench/harness/boxes.py")
_boxes = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_boxes)
hierarchies, why_not = _boxes.hierarchies, _boxes.why_not


class Boxes(_boxes.Boxes):
    def __init__(self, version, sim, directory, **settings):
        self.sim = sim
        super().__init__(version, sim.socket, directory, BUILD / "allotd", BUILD / "sim",
                         **settings)

    def allot(self, *arguments):
        return subprocess.run([BUILD / "allot", *map(str, arguments), "--run-dir", self.run_dir],
                              capture_output=True, text=True, timeout=30, check=False)
