"""Programs that bypass the library and imitate another tenant's: the violation is not attributed to that tenant."""

import os
import pwd
import subprocess

import pytest

from machines import wait_until
from held import SIM
from test_violations import HOLD, find_offender, holders, programs, start_with_settings  # noqa: F401

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the victim is root, the attacker is not")

NOBODY = pwd.getpwnam("nobody")
USER = {"user": NOBODY.pw_uid, "group": NOBODY.pw_gid, "extra_groups": []}


def open_to_users(machine, *more):
    """Gives directories the modes of the system daemon's: other users can enter them if they know the names."""
    for path in [machine.run_dir / "tenants", *more]:
        for directory in [path, *path.parents]:
            if directory.stat().st_mode & 0o777 == 0o700:
                directory.chmod(0o711)
    (machine.run_dir / "sim.sock").chmod(0o666)
    if subprocess.run(["test", "-r", SIM / "libcuda.so.1"], check=False, **USER).returncode != 0:
        pytest.skip("other users can't reach the build's directory")


def attack(machine, command, environment, **user):
    """Starts the command, as another user if `user` is given; returns once it holds memory of the GPU."""
    process = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True,
                               env={**os.environ, "LD_LIBRARY_PATH": str(SIM),
                                    "ALLOT_SIM_SOCKET": str(machine.run_dir / "sim.sock"),
                                    **environment}, **user)
    machine.started.append(process)
    wait_until(lambda: process.pid in holders(machine) or process.poll() is not None,
               what="the attacker's memory")
    assert process.poll() is None


def mount_and_hold(programs, source, target):  # noqa: F811
    """The command of a process that mounts `source` at `target` and then holds memory."""
    return ["sh", "-c", f"mount --bind {source} {target} && exec \"$@\"", "sh", programs / "hoard", *HOLD]


@pytest.mark.parametrize("disguise", ["imitation", "mount", "environment"])
def test_the_violation_is_not_attributed_to_another_tenant(machine, tmp_path, programs, disguise):  # noqa: F811
    start_with_settings(machine, tmp_path)
    machine.start("--name", "victim", "--memory", "1GiB", "--", "sleep", "100")
    machine.wait_for_tenant("victim")
    [directory] = (machine.run_dir / "tenants").iterdir()
    target = tmp_path / "target"
    target.mkdir()
    open_to_users(machine, tmp_path, programs)
    if disguise == "imitation":
        # For example a container of root's, with a directory that a user named.
        imitation = tmp_path / "tenants" / directory.name
        imitation.mkdir(parents=True)
        attack(machine, ["unshare", "--mount", *mount_and_hold(programs, imitation, target)], {})
    elif disguise == "mount":
        # The victim's own directory, in a user namespace.
        if subprocess.run(["unshare", "--user", "true"], check=False, **USER).returncode != 0:
            pytest.skip("users can't make user namespaces here")
        attack(machine, ["unshare", "--user", "--map-root-user", "--mount",
                         *mount_and_hold(programs, directory, target)], {}, **USER)
    else:
        attack(machine, [programs / "hoard", *HOLD],
               {"ALLOT_SOCKET": str(directory / "allot.sock")}, **USER)
    # A later process of a tenant is found, so the daemon has judged the attacker, too.
    machine.start("--name", "bypassing", "--memory", "1GiB", "--", "env", "-u", "LD_PRELOAD",
                  programs / "hoard", *HOLD)
    find_offender(machine, reason="unregistered")
    assert machine.tenants()["victim"]["violations"] == 0
