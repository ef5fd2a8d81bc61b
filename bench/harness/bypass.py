"""Tenants whose liballot.so can be bypassed for a while (src/library/bypass.h), to compare one process with and without it."""

import contextlib
import glob
import os
import shutil
import tempfile

LIBRARY = "liballot-bypass.so"


def find(build):
    """The path of the library with the bypass, or None: an installed allot does not have it."""
    for folder in ("", "meson/src/library", "../library", "src/library"):
        path = os.path.join(build.root, folder, LIBRARY)
        if os.path.exists(path):
            return path
    return None


@contextlib.contextmanager
def standing_aside(machine):
    """Tenants that start within this context have the library with the bypass. Yields False, and changes nothing, if there
    is none."""
    library, allot = find(machine.build), machine.allot
    if not library:
        yield False
        return
    with tempfile.TemporaryDirectory(prefix="allot-bypass-", dir="/tmp") as directory:
        # `allot run` takes the library beside its own file and follows links to that, so allot is copied, not linked.
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
