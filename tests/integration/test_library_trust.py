"""Containers get only a liballot.so that scripts/sign-manifest has signed; the daemon checks it before each container."""

import subprocess

import pytest

from machines import BUILD, ROOT
from scrape import address_in, wait_for_page
from servers import start_servers
from test_cdi import Devices


def sign_manifest(*arguments, status=0):
    done = subprocess.run([ROOT / "scripts" / "sign-manifest", *arguments], capture_output=True, text=True,
                          check=False, timeout=60)
    assert done.returncode == status, done
    return done.stdout or done.stderr


@pytest.fixture
def folder(tmp_path):
    """A folder with a copy of the library, two keys, and a manifest signed by the first key."""
    (tmp_path / "liballot.so").write_bytes((BUILD / "liballot.so").read_bytes())
    for key in ("june", "july"):
        sign_manifest("--new-key", tmp_path / key)
    (tmp_path / "keys").write_text((tmp_path / "june.pub").read_text())
    sign_manifest(tmp_path / "june", tmp_path / "manifest", tmp_path / "liballot.so")
    return tmp_path


def start_trusting_daemon(machine, folder):
    messages = start_servers(machine, folder, "metrics_listen = 127.0.0.1:0\n"
                             f"container_library = {folder}/liballot.so\n"
                             f"library_manifest = {folder}/manifest\nlibrary_keys = {folder}/keys\n")
    return address_in(messages), messages


def wait_for_refused(address, count):
    wait_for_page(address, lambda page: page.value("allot_library_refused_total") == count, f"{count} refusals")


def test_only_signed_libraries_reach_containers(machine, folder):
    address, messages = start_trusting_daemon(machine, folder)
    devices = Devices(machine, folder)
    assert f"{folder}/liballot.so matches the signed manifest {folder}/manifest" in messages
    devices.create("a")
    wait_for_refused(address, 0)
    # The containers' copy is changed: no container gets it any more, and existing ones keep it.
    (copy,) = machine.run_dir.glob("**/lib/*/liballot.so")
    good = copy.read_bytes()
    copy.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    messages = devices.refuse("create", "b")
    assert "library refused: " in messages and "is not the file that allotd installed" in messages
    assert list(devices.list()) == ["a"]
    wait_for_refused(address, 1)
    log = (machine.run_dir / "allotd.log").read_text()
    assert "library refused: no container gets liballot.so: " in log
    copy.write_bytes(good)
    devices.create("b")
    # The next version of the library, which the manifest does not have yet.
    (folder / "liballot.so").write_bytes(good + b"next")
    devices.create("c")     # the installed version is still valid
    sign_manifest(folder / "june", folder / "manifest", folder / "liballot.so")
    devices.create("d")     # now only the new version is valid
    assert len(list(machine.run_dir.glob("**/lib/*/liballot.so"))) == 2
    wait_for_refused(address, 1)
    devices.remove_all()


def test_keys_can_be_replaced(machine, folder):
    """A signature by an unlisted key is refused. A key can be replaced without refusing a container meanwhile."""
    sign_manifest(folder / "july", folder / "manifest", folder / "liballot.so")
    assert "none of the keys" in sign_manifest("--check", folder / "keys", folder / "manifest", status=1)
    address, messages = start_trusting_daemon(machine, folder)
    devices = Devices(machine, folder)
    assert "library refused: no container gets liballot.so: library_manifest: " in messages
    assert f"not signed by a key in {folder}/keys" in devices.refuse("create", "a")
    assert not devices.list()
    wait_for_refused(address, 2)
    sign_manifest(folder / "june", folder / "manifest", folder / "liballot.so")
    devices.create("a")
    with open(folder / "keys", "a", encoding="ascii") as file:
        file.write((folder / "july.pub").read_text())
    devices.create("b")
    sign_manifest(folder / "july", folder / "manifest", folder / "liballot.so")
    assert sign_manifest("--check", folder / "keys", folder / "manifest") == f"{folder}/manifest: signed\n"
    devices.create("c")
    (folder / "keys").write_text((folder / "july.pub").read_text())
    devices.create("d")
    (folder / "manifest").unlink()
    assert "library_manifest: " in devices.refuse("create", "e")
    wait_for_refused(address, 3)
    devices.remove_all()


@pytest.mark.parametrize("arguments, status, message", [
    (["--new-key", "{folder}/june"], 1, "june: is there already"),
    (["{folder}/keys", "{folder}/m", "{folder}/liballot.so"], 1, "sign-manifest: {folder}/keys: "),
    (["{folder}/june", "{folder}/m", "{folder}/none"], 1, "none: no file that can be read"),
    (["--check", "{folder}/june.pub", "{folder}/none"], 1, "no file that can be read"),
    (["{folder}/june"], 2, "sign-manifest KEY MANIFEST LIBRARY..."),
])
def test_usage(folder, arguments, status, message):
    messages = sign_manifest(*(argument.format(folder=folder) for argument in arguments), status=status)
    assert message.format(folder=folder) in messages
    assert not (folder / "m").exists()
