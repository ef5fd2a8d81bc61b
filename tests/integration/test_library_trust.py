"""Containers get only a liballot.so that scripts/sign-manifest has signed; the daemon checks it before each container."""

import subprocess

import pytest

from machines import BUILD, ROOT
from scrape import address_in, wait_for_page
from servers import start_servers
from test_cdi import Devices


def tool(*arguments, status=0):
    done = subprocess.run([ROOT / "scripts" / "sign-manifest", *arguments], capture_output=True, text=True,
                          check=False, timeout=60)
    assert done.returncode == status, done
    return done.stdout or done.stderr


@pytest.fixture
def place(tmp_path):
    """A library of the test's own, two keys, and a manifest by the first."""
    (tmp_path / "liballot.so").write_bytes((BUILD / "liballot.so").read_bytes())
    for key in ("june", "july"):
        tool("--new-key", tmp_path / key)
    (tmp_path / "keys").write_text((tmp_path / "june.pub").read_text())
    tool(tmp_path / "june", tmp_path / "manifest", tmp_path / "liballot.so")
    return tmp_path


def settle(machine, place):
    said = start_servers(machine, place, "metrics_listen = 127.0.0.1:0\n"
                         f"container_library = {place}/liballot.so\n"
                         f"library_manifest = {place}/manifest\nlibrary_keys = {place}/keys\n")
    return address_in(said), said


def wait_for_refused(address, count):
    wait_for_page(address, lambda page: page.value("allot_library_refused_total") == count, f"{count} refusals")


def test_from_key_to_container(machine, place):
    address, said = settle(machine, place)
    devices = Devices(machine, place)
    assert f"{place}/liballot.so matches the signed manifest {place}/manifest" in said
    devices.create("a")
    wait_for_refused(address, 0)
    # The copy that containers have is another by now: no container gets it, and those that run stay.
    (copy,) = machine.run_dir.glob("**/lib/*/liballot.so")
    good = copy.read_bytes()
    copy.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    said = devices.refuse("create", "b")
    assert "library refused: " in said and "is not the file that allotd installed" in said
    assert list(devices.list()) == ["a"]
    wait_for_refused(address, 1)
    log = (machine.run_dir / "allotd.log").read_text()
    assert "library refused: no container gets liballot.so: " in log
    copy.write_bytes(good)
    devices.create("b")
    # The next version of it, which the manifest does not have yet.
    (place / "liballot.so").write_bytes(good + b"next")
    devices.create("c")     # what is installed is still good
    tool(place / "june", place / "manifest", place / "liballot.so")
    devices.create("d")     # and now that one is not, and the new one is
    assert len(list(machine.run_dir.glob("**/lib/*/liballot.so"))) == 2
    wait_for_refused(address, 1)
    devices.remove_all()


def test_keys(machine, place):
    """Another's signature; then a key that follows another, without a container that is refused meanwhile."""
    tool(place / "july", place / "manifest", place / "liballot.so")
    assert "none of the keys" in tool("--check", place / "keys", place / "manifest", status=1)
    address, said = settle(machine, place)
    devices = Devices(machine, place)
    assert "library refused: no container gets liballot.so: library_manifest: " in said
    assert f"not signed by a key in {place}/keys" in devices.refuse("create", "a")
    assert not devices.list()
    wait_for_refused(address, 2)
    tool(place / "june", place / "manifest", place / "liballot.so")
    devices.create("a")
    with open(place / "keys", "a", encoding="ascii") as file:
        file.write((place / "july.pub").read_text())
    devices.create("b")
    tool(place / "july", place / "manifest", place / "liballot.so")
    assert tool("--check", place / "keys", place / "manifest") == f"{place}/manifest: signed\n"
    devices.create("c")
    (place / "keys").write_text((place / "july.pub").read_text())
    devices.create("d")
    (place / "manifest").unlink()
    assert "library_manifest: " in devices.refuse("create", "e")
    wait_for_refused(address, 3)
    devices.remove_all()


@pytest.mark.parametrize("arguments, status, told", [
    (["--new-key", "{place}/june"], 1, "june: is there already"),
    (["{place}/keys", "{place}/m", "{place}/liballot.so"], 1, "sign-manifest: {place}/keys: "),
    (["{place}/june", "{place}/m", "{place}/none"], 1, "none: no file that can be read"),
    (["--check", "{place}/june.pub", "{place}/none"], 1, "no file that can be read"),
    (["{place}/june"], 2, "sign-manifest KEY MANIFEST LIBRARY..."),
])
def test_usage(place, arguments, status, told):
    said = tool(*(argument.format(place=place) for argument in arguments), status=status)
    assert told.format(place=place) in said
    assert not (place / "m").exists()
