"""Metrics over TLS: which clients may read them, and a certificate that is replaced while the daemon runs."""

import http.client
import os
import ssl
import subprocess

import pytest

from machines import GIB, wait_until
from scrape import TOKEN, Page, listen, request


def make_certificate(folder, name, common_name):
    """Signed by itself; returns (certificate, key)."""
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "2", "-subj", f"/CN={common_name}", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", key, "-out", certificate], check=True, capture_output=True, timeout=30)
    return certificate, key


def ask_by_tls(address, certificate, path="/healthz", **headers):
    """(status, text); the server must be who that certificate says."""
    context = ssl.create_default_context(cafile=certificate)
    connection = http.client.HTTPSConnection(address, timeout=20, context=context)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_tls(machine, tmp_path):
    certificate, key = make_certificate(tmp_path, "one", "one")
    token = tmp_path / "token"
    token.write_text(TOKEN)
    address = listen(machine, tmp_path, f"metrics_tls_certificate = {certificate}\nmetrics_tls_key = {key}\n"
                                        f"metrics_token_file = {token}\n")
    assert ask_by_tls(address, certificate) == (200, "ok\n")
    assert ask_by_tls(address, certificate, "/metrics")[0] == 401
    status, text = ask_by_tls(address, certificate, "/metrics", Authorization=f"Bearer {TOKEN}")
    assert status == 200 and Page(text).value("allot_device_memory_bytes") > GIB
    # Nobody else is taken for it, and without TLS it says nothing.
    other, _ = make_certificate(tmp_path, "other", "other")
    with pytest.raises(ssl.SSLCertVerificationError):
        ask_by_tls(address, other)
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        request(address, "/healthz")
    assert ask_by_tls(address, certificate)[0] == 200


def test_a_certificate_is_replaced_while_it_serves(machine, tmp_path):
    certificate, key = make_certificate(tmp_path, "served", "one")
    address = listen(machine, tmp_path, f"metrics_tls_certificate = {certificate}\nmetrics_tls_key = {key}\n")
    first = tmp_path / "first.crt"
    first.write_bytes(certificate.read_bytes())
    assert ask_by_tls(address, first)[0] == 200
    new, new_key = make_certificate(tmp_path, "new", "two")

    def is_served(which):
        try:
            return ask_by_tls(address, which)[0] == 200
        except (ssl.SSLError, ConnectionError):
            return False

    # Half of a change is none: certificate and key don't belong together, and the old ones go on.
    os.replace(new_key, key)
    log = machine.run_dir / "allotd.log"
    wait_until(lambda: is_served(first) and "that were read before stay in use" in log.read_text(),
               what="the refusal of half of a change")
    assert is_served(first)
    os.replace(new, certificate)
    wait_until(lambda: is_served(certificate), what="the new certificate")
    assert not is_served(first)
    assert log.read_text().count("that were read before stay in use") == 1
