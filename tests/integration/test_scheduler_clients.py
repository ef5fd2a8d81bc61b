"""allot-scheduler authenticates its clients: valid and invalid certificates, tokens, and the replacement of both while it
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
    """Some that vouch, and whom they vouch for."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.certificate = folder / "ca.crt"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                f"/CN={folder.name}", "-keyout", folder / "ca.key", "-out", self.certificate)

    def issue(self, name, use="clientAuth", days=2, alternative=None):
        """(certificate, key)"""
        key, request, made = (self.folder / f"{name}.{kind}" for kind in ("key", "csr", "crt"))
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                "-keyout", key, "-out", request)
        (self.folder / "ext").write_text(f"extendedKeyUsage={use}\n" +
                                         (f"subjectAltName={alternative}\n" if alternative else ""))
        openssl("x509", "-req", "-days", days, "-in", request, "-CA", self.certificate, "-CAkey", self.folder / "ca.key",
                "-CAcreateserial", "-extfile", self.folder / "ext", "-out", made)
        return made, key


def connect(scheduler, shown=None):
    context = ssl.create_default_context(cafile=scheduler.certificate)
    if shown:
        context.load_cert_chain(*shown)
    return http.client.HTTPSConnection(scheduler.https, timeout=20, context=context)


def ask(connection, method, path, body=None, **headers):
    connection.request(method, path, json.dumps(body) if body is not None else None, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    return answer.status, json.loads(text).get("Error") if text.startswith("{") else text, answer


def bind(scheduler, shown=None):
    connection = connect(scheduler, shown)
    try:
        return ask(connection, "POST", "/bind", {})[:2]
    finally:
        connection.close()


@pytest.fixture
def mine(tmp_path):
    return Authority(tmp_path / "mine")


@pytest.fixture
def scheduler(tmp_path):
    started = []

    def start(settings):
        started.append(Scheduler(tmp_path / "s", settings))
        return started[-1]

    yield start
    for one in started:
        one.stop()


LET_IN = (200, "allot-scheduler does not know the cluster's nodes, because its setting kube_api is off: set it to in-cluster or to a "
               "kubeconfig")


def test_which_certificates_count(scheduler, mine, tmp_path):
    s = scheduler(f"client_ca = {mine.certificate}\nclient_names = kube-scheduler, spiffe://cluster/*\n")
    assert bind(s, mine.issue("kube-scheduler")) == LET_IN
    assert bind(s, mine.issue("other", alternative="URI:spiffe://cluster/scheduler")) == LET_IN
    status, why = bind(s)
    assert status == 403 and "a client certificate signed by an authority in client_ca is required, but none was presented" in why
    status, why = bind(s, mine.issue("allotd", alternative="DNS:kube-scheduler.example"))
    assert (status, why) == (403, "no name of the client certificate (common name 'allotd') is in client_names, which is kube-scheduler, spiffe://cluster/*")
    for wrong in (Authority(tmp_path / "other").issue("kube-scheduler"), mine.issue("kube-scheduler", use="serverAuth"),
                  mine.issue("kube-scheduler", days=-1)):
        status, why = bind(s, wrong)
        assert status == 403 and "the client certificate was not accepted" in why, why
    # By plain HTTP none is shown, and what needs none is answered to everybody.
    plain = http.client.HTTPConnection(s.http, timeout=20)
    status, why, _ = ask(plain, "POST", "/bind", {})
    assert status == 403 and "connect to https_listen" in why
    assert ask(plain, "POST", "/filter", {})[0] == 200 and ask(plain, "GET", "/healthz")[0] == 200
    plain.close()
    assert s.log.read_text().count("a request for /bind was refused: ") == 1  # and not for each
    assert 'verb="bind",result="refused"} 6\n' in s.ask("GET", "/metrics")[1].decode()


def test_who_vouches_is_replaced_while_it_serves(scheduler, mine, tmp_path):
    known = tmp_path / "known.crt"
    known.write_bytes(mine.certificate.read_bytes())
    s = scheduler(f"client_ca = {known}\n")
    old, other = mine.issue("kube-scheduler"), Authority(tmp_path / "other")
    new = other.issue("kube-scheduler")
    assert bind(s, old) == LET_IN and bind(s, new)[0] == 403
    # What is no certificate changes nothing.
    good = known.read_text().splitlines()
    for count, broken in enumerate(("nothing\n", "\n".join([good[0], "!" + good[1][1:], *good[2:]]))):
        (tmp_path / "broken").write_text(broken)
        os.replace(tmp_path / "broken", known)
        wait_until(lambda: bind(s, old) == LET_IN and
                   s.log.read_text().count("that were read before stay in use") == count + 1,  # noqa: B023
                   what="the refusal of what is no certificate")
    assert bind(s, new)[0] == 403
    (tmp_path / "new").write_bytes(other.certificate.read_bytes())
    os.replace(tmp_path / "new", known)
    wait_until(lambda: bind(s, new) == LET_IN, what="the new authority")
    assert bind(s, old)[0] == 403


def test_every_verb_by_option(scheduler, mine):
    s = scheduler(f"client_ca = {mine.certificate}\n"
                  "client_verbs = webhook, filter, prioritize, preempt, bind, explain, metrics\n")
    anybody, known = connect(s), connect(s, mine.issue("anyone"))
    for method, path in (("POST", "/webhook"), ("POST", "/filter"), ("POST", "/prioritize"), ("POST", "/preempt"),
                         ("POST", "/bind"), ("GET", "/explain/a/b"), ("GET", "/metrics")):
        body = {} if method == "POST" else None
        assert ask(anybody, method, path, body)[0] == 403, path
        assert ask(known, method, path, body)[0] in (200, 400, 503), path
    for path in ("/healthz", "/readyz"):
        assert ask(anybody, "GET", path)[0] == 200
    anybody.close()
    known.close()


def test_a_token_for_people(scheduler, mine, tmp_path):
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    s = scheduler(f"token_file = {file}\nclient_ca = {mine.certificate}\nclient_verbs = bind, metrics\nclient_local = on\n")
    client = connect(s)
    status, why, answer = ask(client, "GET", "/metrics")
    assert status == 401 and why == "the bearer token of token_file is required"
    assert answer.getheader("WWW-Authenticate").startswith("Bearer")
    assert ask(client, "GET", "/explain/a/b", Authorization=f"Bearer {TOKEN}x")[0] == 401
    assert ask(client, "GET", "/metrics", Authorization=f"Bearer {TOKEN}")[0] == 200
    # As it comes through a proxy that has taken the other header for itself.
    assert ask(client, "GET", "/metrics", **{"X-Allot-Authorization": f"Bearer {TOKEN}"})[0] == 200
    assert ask(client, "POST", "/bind", {}, Authorization=f"Bearer {TOKEN}")[0] == 403
    file.write_text("another-token-of-the-test")
    assert ask(client, "GET", "/metrics", Authorization=f"Bearer {TOKEN}")[0] == 401
    client.close()
    # A certificate does as well; and on this machine nothing is needed.
    shown = connect(s, mine.issue("prometheus"))
    assert ask(shown, "GET", "/metrics")[0] == 200 and ask(shown, "GET", "/explain/a/b")[0] == 401
    shown.close()
    plain = http.client.HTTPConnection(s.http, timeout=20)
    assert ask(plain, "GET", "/metrics")[0] == 200 and ask(plain, "POST", "/bind", {})[:2] == LET_IN
    plain.close()
