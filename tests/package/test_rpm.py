"""RPM packages, as far as Debian's rpm can check them: they are built, complete, installable, and their programs run."""

import os
import shutil

import pytest

from packages import make_packages, run


def test_rpm_packages(tmp_path):
    if not shutil.which("rpmbuild"):
        pytest.skip("no rpmbuild here")
    rpms = make_packages("rpm", tmp_path / "first")
    assert sorted(name.split("-0.")[0] for name in rpms) == ["allot", "allot-client-devel", "allot-client-libs",
                                                             "allot-scheduler", "python3-allot"]
    root = tmp_path / "root"
    root.mkdir()
    # The database of Debian's rpm has no package that could satisfy the dependencies.
    run("rpm", "--root", root, "--dbpath", "/db", "--nodeps", "--noscripts", "-i", *rpms.values())
    library, = [*root.glob("usr/lib64/liballot-client.so.0")] or root.glob("usr/lib/**/liballot-client.so.0")
    site, = root.glob("usr/lib/python3*/site-packages")
    done = run(root / "usr/bin/allot", "run", "--sim", "h200", "--memory", "1GiB", "--name", "a", "--", "python3", "-c",
               "import allot; print(allot.Client(simulated='h200').list().tenant('a').shares[0].memory_quota_bytes)",
               env={**os.environ, "ALLOT_RUN_DIR": str(tmp_path / "run"), "PYTHONPATH": str(site),
                    "ALLOT_CLIENT_LIBRARY": str(library.resolve())})
    assert done.strip() == str(1 << 30)
    for name, provided in (("allot-client-libs", "liballot-client.so.0(LIBALLOT_CLIENT_0.1)(64bit)"),
                           ("allot-client-devel", "pkgconfig(allot-client)")):
        path, = (path for file, path in rpms.items() if file.startswith(f"{name}-0."))
        assert provided in run("rpm", "-qp", "--provides", path)
    path, = (path for file, path in rpms.items() if file.startswith("allot-0."))
    assert "libcuda" not in run("rpm", "-qp", "--provides", "--requires", path)
