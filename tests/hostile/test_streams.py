"""Work on more streams than the library keeps records of."""

import json
import pathlib
import time

import pytest

from held import PROGRAMS, compile_c, link_with_driver

PROGRAM = pathlib.Path(__file__).resolve().parent / "programs" / "many_streams.c"


@pytest.mark.alone  # shares
def test_many_streams_take_no_more_than_one(machine, tmp_path):
    program = compile_c(tmp_path / "many_streams", f"-I{PROGRAMS}", PROGRAM, *link_with_driver())
    begin = time.time() + 5
    one = machine.start("--name", "one", "--cores", 50, "--cores-limit", 100, "--",
                        *machine.load("--seconds", 6, "--start-at", begin, "--blocks", 264))
    time.sleep(2)  # it has calibrated itself on an idle GPU
    many = machine.start("--name", "many", "--cores", 10, "--cores-limit", 10, "--", program, 4000, 12)
    assert many.stdout.readline() == "begun\n", many.stderr.read()
    out, err = one.communicate(timeout=120)
    assert one.returncode == 0, err
    shares = [json.loads(line)["share_pct"] for line in out.splitlines() if "share_pct" in line]
    print(f"beside 4,000 streams: {shares}")
    assert shares[-1] > 80
    assert many.poll() is None
