"""Metrics over TLS: access, and a certificate that is replaced while the daemon runs."""

import http.client
import os
import ssl
import subprocess

import pytest

from machines import GIB, wait_until
from scrape import TOKEN, Page, listen, request


def make_certificate(folder, name, common_name):
    """Makes a self-signed certificate; returns the files (certificate, key)."""
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "2", "-subj", f"/CN={common_name}", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", key, "-out", certificate], check=True, capture_output=True, timeout=30)
    return certificate, key


def request_by_tls(address, certificate, path="/healthz", **headers):
    """Returns (status, text); raises SSLCertVerificationError unless the server has that certificate."""
    context = ssl.create_default_context(cafile=certificate)
    connection = http.client.HTTPSConnection(address, timeout=20, context=context)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_only_tls_requests_are_answered(machine, tmp_path):
    certificate, key = make_certificate(tmp_path, "one", "one")
    token = tmp_path / "token"
    token.write_text(TOKEN)
    address = listen(machine, tmp_path, f"metrics_tls_certificate = {certificate}\nmetrics_tls_key = {key}\n"
                                        f"metrics_token_file = {token}\n")
    assert request_by_tls(address, certificate) == (200, "ok\n")
    assert request_by_tls(address, certificate, "/metrics")[0] == 401
    status, text = request_by_tls(address, certificate, "/metrics", Authorization=f"Bearer {TOKEN}")
    assert status == 200 and Page(text).value("allot_device_memory_bytes") > GIB
    # A client that expects another certificate refuses the server, and a request without TLS gets no answer.
    other, _ = make_certificate(tmp_path, "other", "other")
    with pytest.raises(ssl.SSLCertVerificationError):
        request_by_tls(address, other)
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        request(address, "/healthz")
    assert request_by_tls(address, certificate)[0] == 200


def test_a_certificate_is_replaced_while_the_daemon_serves(machine, tmp_path):
    certificate, key = make_certificate(tmp_path, "served", "one")
    address = listen(machine, tmp_path, f"metrics_tls_certificate = {certificate}\nmetrics_tls_key = {key}\n")
    first = tmp_path / "first.crt"
    first.write_bytes(certificate.read_bytes())
    assert request_by_tls(address, first)[0] == 200
    new, new_key = make_certificate(tmp_path, "new", "two")

    def is_served(which):
        try:
            return request_by_tls(address, which)[0] == 200
        except (ssl.SSLError, ConnectionError):
            return False

    # Only the key has changed. It does not match the certificate, so the old pair remains in use.
    os.replace(new_key, key)
    log = machine.run_dir / "allotd.log"
    wait_until(lambda: is_served(first) and "that were read before stay in use" in log.read_text(),
               what="the log entry about the mismatch")
    assert is_served(first)
    os.replace(new, certificate)
    wait_until(lambda: is_served(certificate), what="the new certificate")
    assert not is_served(first)
    assert log.read_text().count("that were read before stay in use") == 1
