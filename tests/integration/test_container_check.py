"""The groups `container` and `dra` of tests/gpu/run on the simulated GPU. runc starts a container with a CDI specification,
which `allot cdi create` writes, or allot's DRA driver for a ResourceClaim."""

import os
import subprocess
import sys

import pytest
from machines import BUILD, ROOT
from test_freezer_runc import remove_left, why_not_runc


@pytest.mark.alone  # shares
@pytest.mark.skipif(os.geteuid() != 0, reason="containers need root")
@pytest.mark.parametrize("group", ["container", "dra"])
def test_a_container_by_its_specification(tmp_path, group):
    reason = why_not_runc(tmp_path)
    remove_left(f"allot-probe-{os.getpid()}")
    if reason:
        pytest.skip(reason)
    result = subprocess.run([sys.executable, ROOT / "tests/gpu/run", "--build", BUILD, "--sim", "h200", "--only",
                             group], capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.endswith("6 passed, 0 failed, 0 skipped\n"), result.stdout
