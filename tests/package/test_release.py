"""The files that scripts/release adds to packages: source, bill of materials, checksums, signature."""

import json
import shutil
import subprocess
import sys

import pytest

import tutorial
from packages import ROOT, run


@pytest.fixture(scope="module")
def released(debs, tmp_path_factory):
    """A folder with a release, its key, and the file of allowed signers."""
    at = tmp_path_factory.mktemp("release")
    for path in debs.values():
        shutil.copy2(path, at)
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", at / "key")
    (at / "signers").write_text(f"release@allot.dev {(at / 'key.pub').read_text()}")
    run(ROOT / "scripts/release", at / "key", at)
    return at


def verify(at, text):
    """The exit status of ssh-keygen for this text of SHA256SUMS."""
    return subprocess.run(["ssh-keygen", "-Y", "verify", "-f", at / "signers", "-I", "release@allot.dev", "-n", "allot-release",
                           "-s", at / "SHA256SUMS.sig"], input=text, capture_output=True, check=False).returncode


def test_checksums_are_signed(released):
    text = (released / "SHA256SUMS").read_bytes()
    assert verify(released, text) == 0
    assert verify(released, text.replace(b"0", b"1", 1)) != 0
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=released)
    named = {line.split()[1] for line in text.decode().splitlines()}
    assert named == {path.name for path in released.iterdir() if path.name.endswith((".deb", ".tar.gz", ".spdx.json"))}


def test_the_commands_of_the_guide_verify_a_release(released):
    """The commands in docs/guide/install.md by which users verify packages."""
    text, = (text for language, text in tutorial.blocks(ROOT / "docs/guide/install.md") if "ssh-keygen -Y verify" in text)
    assert text.startswith("cd build/packages\n")
    output = run("sh", "-ec", text.split("\n", 1)[1], cwd=released)
    assert "Good" in output and "OK" in output and "FAILED" not in output


def test_a_second_run_changes_nothing(released):
    before = {path.name: path.read_bytes() for path in released.iterdir()}
    run(ROOT / "scripts/release", released / "key", released)
    assert {path.name: path.read_bytes() for path in released.iterdir()} == before


def test_the_bill_of_materials_is_spdx(released):
    path, = released.glob("*.spdx.json")
    pytest.importorskip("spdx_tools")
    run(sys.executable, "-c", "import sys; from spdx_tools.spdx.parser.parse_anything import parse_file; "
        "from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document as validate; "
        "found = validate(parse_file(sys.argv[1])); sys.exit('\\n'.join(m.validation_message for m in found) or 0)", path)
    bill = json.loads(path.read_text())
    names = {package["name"] for package in bill["packages"]}
    assert {"uPlot", "libjansson4", "libsqlite3-0"} <= names
    hashes = dict(reversed(line.split()) for line in (released / "SHA256SUMS").read_text().splitlines())
    for package in bill["packages"]:
        if "packageFileName" in package:
            assert package["checksums"][0]["checksumValue"] == hashes[package["packageFileName"]]


def test_errors_of_the_command_line(tmp_path):
    for arguments, message in (((), "no key given"), ((tmp_path / "none",), "no such key"),
                               ((__file__, tmp_path), "no packages there")):
        done = subprocess.run([ROOT / "scripts/release", *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 2 and message in done.stderr and len(done.stderr.splitlines()) == 1
