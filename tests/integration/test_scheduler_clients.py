"""allot-scheduler authenticates its clients: valid and invalid certificates, tokens, and their replacement while the scheduler
serves."""

import http.client
import json
import os
import ssl
import subprocess

import pytest

from machines import wait_until
from scheduler import Scheduler

TOKEN = "a-token-of-the-test"


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=30)


class Authority:
    """A certificate authority, and the client certificates that it issues."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.certificate = folder / "ca.crt"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                f"/CN={folder.name}", "-keyout", folder / "ca.key", "-out", self.certificate)

    def issue(self, name, use="clientAuth", days=2, alternative=None):
        """Issues a certificate with common name `name`, expired if days is negative; returns the files (certificate, key)."""
        key, request, certificate = (self.folder / f"{name}.{kind}" for kind in ("key", "csr", "crt"))
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                "-keyout", key, "-out", request)
        (self.folder / "ext").write_text(f"extendedKeyUsage={use}\n" +
                                         (f"subjectAltName={alternative}\n" if alternative else ""))
        openssl("x509", "-req", "-days", days, "-in", request, "-CA", self.certificate, "-CAkey", self.folder / "ca.key",
                "-CAcreateserial", "-extfile", self.folder / "ext", "-out", certificate)
        return certificate, key


def connect(scheduler, credentials=None):
    """A connection over TLS, with the client certificate `credentials`: the files (certificate, key)."""
    context = ssl.create_default_context(cafile=scheduler.certificate)
    if credentials:
        context.load_cert_chain(*credentials)
    return http.client.HTTPSConnection(scheduler.https, timeout=20, context=context)


def ask(connection, method, path, body=None, **headers):
    """Returns (status, the error of a JSON answer or else its text, the response)."""
    connection.request(method, path, json.dumps(body) if body is not None else None, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    return answer.status, json.loads(text).get("Error") if text.startswith("{") else text, answer


def bind(scheduler, credentials=None):
    """Sends a request for /bind; returns (status, error)."""
    connection = connect(scheduler, credentials)
    try:
        return ask(connection, "POST", "/bind", {})[:2]
    finally:
        connection.close()


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path / "trusted")


@pytest.fixture
def scheduler(tmp_path):
    started = []

    def start(settings):
        started.append(Scheduler(tmp_path / "s", settings))
        return started[-1]

    yield start
    for one in started:
        one.stop()


# The answer to a client that may bind.
ACCEPTED = (200, "allot-scheduler does not know the cluster's nodes, because its setting kube_api is off: set it to in-cluster "
                 "or to a kubeconfig")


def test_certificates_that_are_accepted(scheduler, authority, tmp_path):
    s = scheduler(f"client_ca = {authority.certificate}\nclient_names = kube-scheduler, spiffe://cluster/*\n")
    assert bind(s, authority.issue("kube-scheduler")) == ACCEPTED
    assert bind(s, authority.issue("other", alternative="URI:spiffe://cluster/scheduler")) == ACCEPTED
    status, reason = bind(s)
    assert status == 403
    assert "a client certificate signed by an authority in client_ca is required, but none was presented" in reason
    status, reason = bind(s, authority.issue("allotd", alternative="DNS:kube-scheduler.example"))
    assert (status, reason) == (403, "no name of the client certificate (common name 'allotd') is in client_names "
                                     "(kube-scheduler, spiffe://cluster/*): use another certificate, or add a name")
    for wrong in (Authority(tmp_path / "other").issue("kube-scheduler"),
                  authority.issue("kube-scheduler", use="serverAuth"), authority.issue("kube-scheduler", days=-1)):
        status, reason = bind(s, wrong)
        assert status == 403 and "the client certificate was not accepted" in reason, reason
    # A client can't present a certificate over plain HTTP. Verbs that require none are answered there too.
    plain = http.client.HTTPConnection(s.http, timeout=20)
    status, reason, _ = ask(plain, "POST", "/bind", {})
    assert status == 403 and "connect to https_listen" in reason
    assert ask(plain, "POST", "/filter", {})[0] == 200 and ask(plain, "GET", "/healthz")[0] == 200
    plain.close()
    assert s.log.read_text().count("a request for /bind was refused: ") == 1  # not once per request
    assert 'verb="bind",result="refused"} 6\n' in s.ask("GET", "/metrics")[1].decode()


def test_client_ca_is_replaced_while_the_scheduler_serves(scheduler, authority, tmp_path):
    known = tmp_path / "known.crt"
    known.write_bytes(authority.certificate.read_bytes())
    s = scheduler(f"client_ca = {known}\n")
    old, other = authority.issue("kube-scheduler"), Authority(tmp_path / "other")
    new = other.issue("kube-scheduler")
    assert bind(s, old) == ACCEPTED and bind(s, new)[0] == 403
    # A file without a valid certificate changes nothing.
    good = known.read_text().splitlines()
    for count, broken in enumerate(("nothing\n", "\n".join([good[0], "!" + good[1][1:], *good[2:]]))):
        (tmp_path / "broken").write_text(broken)
        os.replace(tmp_path / "broken", known)
        wait_until(lambda: bind(s, old) == ACCEPTED and
                   s.log.read_text().count("that were read before stay in use") == count + 1,  # noqa: B023
                   what="the log entry about the invalid file")
    assert bind(s, new)[0] == 403
    (tmp_path / "new").write_bytes(other.certificate.read_bytes())
    os.replace(tmp_path / "new", known)
    wait_until(lambda: bind(s, new) == ACCEPTED, what="the new authority")
    assert bind(s, old)[0] == 403


def test_client_verbs_require_a_certificate(scheduler, authority):
    s = scheduler(f"client_ca = {authority.certificate}\n"
                  "client_verbs = webhook, filter, prioritize, preempt, bind, explain, metrics\n")
    anonymous, known = connect(s), connect(s, authority.issue("anyone"))
    for method, path in (("POST", "/webhook"), ("POST", "/filter"), ("POST", "/prioritize"), ("POST", "/preempt"),
                         ("POST", "/bind"), ("GET", "/explain/a/b"), ("GET", "/metrics")):
        body = {} if method == "POST" else None
        assert ask(anonymous, method, path, body)[0] == 403, path
        assert ask(known, method, path, body)[0] in (200, 400, 503), path
    for path in ("/healthz", "/readyz"):
        assert ask(anonymous, "GET", path)[0] == 200
    anonymous.close()
    known.close()


def test_a_token_for_users(scheduler, authority, tmp_path):
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    s = scheduler(f"token_file = {file}\nclient_ca = {authority.certificate}\n"
                  "client_verbs = bind, metrics\nclient_local = on\n")
    client = connect(s)
    status, reason, answer = ask(client, "GET", "/metrics")
    assert status == 401 and reason == "the bearer token of token_file is required"
    assert answer.getheader("WWW-Authenticate").startswith("Bearer")
    assert ask(client, "GET", "/explain/a/b", Authorization=f"Bearer {TOKEN}x")[0] == 401
    assert ask(client, "GET", "/metrics", Authorization=f"Bearer {TOKEN}")[0] == 200
    # A proxy may use the header Authorization itself, so the token is accepted in another one too.
    assert ask(client, "GET", "/metrics", **{"X-Allot-Authorization": f"Bearer {TOKEN}"})[0] == 200
    assert ask(client, "POST", "/bind", {}, Authorization=f"Bearer {TOKEN}")[0] == 403
    file.write_text("another-token-of-the-test")
    assert ask(client, "GET", "/metrics", Authorization=f"Bearer {TOKEN}")[0] == 401
    client.close()
    # A certificate is accepted instead of the token. Clients on this machine need neither.
    prometheus = connect(s, authority.issue("prometheus"))
    assert ask(prometheus, "GET", "/metrics")[0] == 200 and ask(prometheus, "GET", "/explain/a/b")[0] == 401
    prometheus.close()
    plain = http.client.HTTPConnection(s.http, timeout=20)
    assert ask(plain, "GET", "/metrics")[0] == 200 and ask(plain, "POST", "/bind", {})[:2] == ACCEPTED
    plain.close()
