"""Tenants whose liballot.so can stand aside for a while (src/library/bypass.h): the same process with and without it."""

import contextlib
import glob
import os
import shutil
import tempfile

LIBRARY = "liballot-bypass.so"


def find(build):
    """None where there is none: an installed allot has no such library."""
    for folder in ("", "meson/src/library", "../library", "src/library"):
        path = os.path.join(build.root, folder, LIBRARY)
        if os.path.exists(path):
            return path
    return None


@contextlib.contextmanager
def standing_aside(machine):
    """Tenants that are started meanwhile have it. Yields whether there is one: else they are as ever."""
    library, allot = find(machine.build), machine.allot
    if not library:
        yield False
        return
    with tempfile.TemporaryDirectory(prefix="allot-bypass-", dir="/tmp") as directory:
        # `allot run` takes what is beside it, wherever links to it are.
        shutil.copy(allot, os.path.join(directory, "allot"))
        shutil.copy(library, os.path.join(directory, "liballot.so"))
        beside = [machine.build.program("allotd"), *glob.glob(os.path.join(os.path.dirname(allot), "lib*.so.*"))]
        if machine.sim:
            beside += [machine.build.program("allot-sim"), machine.build.sim_dir()]
        for path in beside:
            os.symlink(path, os.path.join(directory, os.path.basename(path)))
        machine.allot = os.path.join(directory, "allot")
        try:
            yield True
        finally:
            machine.allot = allot
