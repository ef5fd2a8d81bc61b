"""allot-scheduler as its clients see it: TLS, limits, misbehaving clients, and its command line."""

import base64
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import time

import pytest

from machines import wait_until
from scheduler import Scheduler, gpu_pod, issue, patch_of, review, run_scheduler


@pytest.fixture
def scheduler(tmp_path):
    """start(settings, tls) starts allot-scheduler until the test ends; it returns the Scheduler."""
    started = []

    def start(settings="", tls=True):
        started.append(Scheduler(tmp_path / f"s{len(started)}", settings, tls))
        return started[-1]

    yield start
    for one in started:
        one.stop()


def test_the_webhook_completes_pods_over_tls(scheduler):
    s = scheduler()
    status, answer = s.post("/webhook", review(gpu_pod({"nvidia.com/gpumem": "3000"})))
    assert status == 200
    assert answer["response"]["allowed"] and answer["response"]["uid"] == "u-1"
    patch = {one["path"]: one["value"] for one in patch_of(answer)}
    assert patch["/spec/schedulerName"] == "allot-scheduler"
    assert patch["/spec/containers/0/resources/limits/nvidia.com~1gpu"] == "1"
    status, answer = s.post("/webhook", review(gpu_pod({"nvidia.com/gpu": "1"}, nodeName="n")))
    assert status == 200 and not answer["response"]["allowed"]
    assert answer["response"]["status"]["message"].startswith("pod has node assigned: n")
    text = s.ask("GET", "/metrics")[1].decode()
    assert 'allot_scheduler_requests_total{verb="webhook",result="good"} 2\n' in text
    assert "allot_scheduler_pods_denied_total 1\n" in text and "allot_scheduler_pods_changed_total 1\n" in text


def test_malformed_reviews_are_refused(scheduler):
    s = scheduler()
    for body in ("", "{", "[" * 100000, '{"a":1,"a":2}', b"\xff\xfe", json.dumps({"kind": "AdmissionReview"}),
                 json.dumps([review({})])):
        status, answer = s.ask("POST", "/webhook", body)
        assert status == 400 and json.loads(answer)["Error"], (body[:40], status, answer)
    # A NUL character in a text does not bypass the check.
    status, answer = s.ask("POST", "/webhook",
                           json.dumps(review(gpu_pod({"nvidia.com/gpu": "1\0"}, hostname="a\0b"))))
    assert status == 200 and not json.loads(answer)["response"]["allowed"]
    assert 'requests_total{verb="webhook",result="refused"} 7\n' in s.ask("GET", "/metrics")[1].decode()


def test_the_audit_log_is_reopened_after_sighup(scheduler, tmp_path):
    """A refused binding is logged; after SIGHUP, which logrotate sends, the log continues in a new file."""
    log, old = tmp_path / "audit.log", tmp_path / "audit.log.1"
    s = scheduler(f"audit_log = {log}\n", tls=False)

    def ask():
        own = http.client.HTTPConnection(s.http, timeout=20)
        own.request("POST", "/bind", json.dumps({"PodName": "p", "PodNamespace": "ns", "PodUID": "u", "Node": "n"}),
                    {"Content-Type": "application/json"})
        with own.getresponse() as answer:
            assert "kube_api is off" in json.load(answer)["Error"]
        own.close()

    def events(file):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        assert all(line["version"] == 1 and line["time"].endswith("Z") for line in lines)
        return lines

    ask()
    began, refused = events(log)
    assert began["event"] == "start" and began["daemon"].startswith("allot-scheduler ") and began["pid"] == s.process.pid
    assert {name: refused[name] for name in ("event", "by", "namespace", "pod", "uid", "node")} == {
        "event": "bind", "by": {"kind": "extender"}, "namespace": "ns", "pod": "p", "uid": "u", "node": "n"}
    assert "kube_api is off" in refused["refused"]
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    log.rename(old)
    s.process.send_signal(signal.SIGHUP)
    wait_until(log.exists, what="the new log file")
    ask()
    assert [line["event"] for line in events(old)] == ["start", "bind"]
    own = http.client.HTTPConnection(s.http, timeout=20)
    own.request("GET", "/metrics")
    text = own.getresponse().read().decode()
    own.close()
    assert "allot_scheduler_audit_lines_total 3\n" in text and "allot_scheduler_audit_lines_lost_total 0\n" in text
    s.stop()
    assert [line["event"] for line in events(log)] == ["bind", "stop"]


def test_paths_and_methods(scheduler):
    s = scheduler()
    assert s.ask("GET", "/healthz") == (200, b"ok\n")
    assert s.ask("GET", "/readyz") == (200, b"ready\n")
    assert s.ask("GET", "/nothing")[0] == 404
    assert s.ask("GET", "/webhook")[0] == 405
    assert s.ask("POST", "/metrics", "{}")[0] == 405
    for path in ("/filter", "/preempt", "/bind"):
        status, answer = s.post(path, {})
        assert status == 200 and "kube_api is off" in answer["Error"]
    assert s.post("/prioritize", {})[0] == 503
    # Clients on this machine get the same answers without TLS.
    plain = http.client.HTTPConnection(s.http, timeout=20)
    plain.request("POST", "/webhook", json.dumps(review(gpu_pod({"nvidia.com/gpu": "1"}))))
    assert json.load(plain.getresponse())["response"]["allowed"]
    plain.close()


def test_a_body_over_the_limit(scheduler):
    s = scheduler("body_limit = 64KiB\n")
    pod = gpu_pod({"nvidia.com/gpu": "1"})
    pod["metadata"]["annotations"] = {"fill": ""}
    fill_bytes = 64 * 1024 - len(json.dumps(review(pod)))
    for more, expected in ((0, 200), (1, 413), (3_000_000, 413)):
        pod["metadata"]["annotations"]["fill"] = "x" * (fill_bytes + more)
        assert s.ask("POST", "/webhook", json.dumps(review(pod)))[0] == expected
    # A chunked body, without a length in advance, has the same limit.
    body = iter([b"x" * 10000] * 20)
    assert s.ask("POST", "/webhook", body)[0] == 413
    assert s.ask("GET", "/healthz")[0] == 200


def test_slow_clients_delay_no_one(scheduler):
    """Some clients stop during the TLS handshake, some within a request, and some don't read. Others are answered at once."""
    s = scheduler("connections = 64\n")
    host, port = s.https.split(":")
    slow = []
    for i in range(30):
        one = socket.create_connection((host, int(port)), timeout=20)
        slow.append(one)
        if i % 3 == 0:
            one.sendall(b"\x16\x03\x01\x02\x00\x01")
            continue
        context = ssl.create_default_context(cafile=s.certificate)
        one = context.wrap_socket(one, server_hostname="127.0.0.1")
        slow[-1] = one
        one.sendall(b"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n" + (b"\r\n{" if i % 3 == 1 else b""))
    body = json.dumps(review(gpu_pod({"nvidia.com/gpu": "1"})))
    connection = s.connect()
    for _ in range(50):
        assert s.ask("POST", "/webhook", body, connection)[0] == 200
    connection.close()

    # In the end all of them are dropped.
    def is_closed(one):
        one.settimeout(0.01)
        try:
            return one.recv(1 << 16) == b""
        except (TimeoutError, ssl.SSLError):
            return False
        except OSError:
            return True

    waiting = list(slow)

    def all_closed():
        waiting[:] = [one for one in waiting if not is_closed(one)]
        return not waiting

    wait_until(all_closed, 30, "the end of slow clients")
    for one in slow:
        one.close()


def test_a_certificate_is_replaced_while_the_scheduler_serves(scheduler, tmp_path):
    s = scheduler()
    first = tmp_path / "first.crt"
    first.write_bytes(s.certificate.read_bytes())
    body = json.dumps(review(gpu_pod({"nvidia.com/gpu": "1"})))
    old = s.connect()
    assert s.ask("POST", "/webhook", body, old)[0] == 200
    old_socket = old.sock
    issue(tmp_path / "new", "--names", "localhost,127.0.0.1")

    def is_served(which):
        try:
            return s.ask("GET", "/healthz", certificate=which)[0] == 200
        except (ssl.SSLError, ConnectionError):
            return False

    # Only the key has changed. It does not match the certificate, so the old pair remains in use.
    os.replace(tmp_path / "new/tls.key", s.key)
    wait_until(lambda: is_served(first) and "that were read before stay in use" in s.log.read_text(),
               what="the log entry about the mismatch")
    new = tmp_path / "new.crt"
    new.write_bytes((tmp_path / "new/tls.crt").read_bytes())
    os.replace(tmp_path / "new/tls.crt", s.certificate)
    wait_until(lambda: is_served(new), what="the new certificate")
    assert not is_served(first)
    # An existing connection gets one more answer, which asks the client to reconnect.
    old.request("POST", "/webhook", body)
    answer = old.getresponse()
    assert answer.status == 200 and answer.getheader("Connection") == "close"
    assert json.load(answer)["response"]["allowed"]
    assert old.sock is None or old.sock is not old_socket
    assert s.process.poll() is None


def test_idle_connections_make_room_for_others(scheduler):
    """With more clients than allowed connections, idle ones are closed, so that all requests are answered."""
    s = scheduler("connections = 8\n")
    connections = [s.connect() for _ in range(12)]
    for connection in connections:
        connection.timeout = 60
        assert s.ask("GET", "/healthz", connection=connection)[0] == 200
    for connection in connections:
        connection.close()


def test_issued_certificates(tmp_path):
    folder = tmp_path / "tls"
    bundle = issue(folder, "--names", "scheduler.example,10.1.2.3,::1")
    assert base64.b64decode(bundle) == (folder / "tls.crt").read_bytes()
    assert stat.S_IMODE((folder / "tls.key").stat().st_mode) == 0o600
    text = subprocess.run(["openssl", "x509", "-in", folder / "tls.crt", "-noout", "-ext", "subjectAltName"],
                          capture_output=True, text=True, check=True, timeout=30).stdout
    assert "DNS:scheduler.example" in text and "10.1.2.3" in text and "0:0:0:0:0:0:0:1" in text
    subprocess.run(["openssl", "verify", "-CAfile", folder / "tls.crt", folder / "tls.crt"], check=True, timeout=30,
                   capture_output=True)
    done = run_scheduler("--ca-bundle", folder / "tls.crt")
    assert done.stdout.strip() == bundle
    # A key is never printed, and no file is overwritten.
    done = run_scheduler("--ca-bundle", folder / "tls.key")
    assert done.returncode == 1 and "must be a PEM file with a certificate" in done.stderr
    before = (folder / "tls.key").read_bytes()
    done = run_scheduler("--issue", folder)
    assert done.returncode == 1 and "tls.crt: File exists" in done.stderr
    (folder / "tls.crt").unlink()
    done = run_scheduler("--issue", folder)
    assert done.returncode == 1 and "tls.key: File exists" in done.stderr
    assert (folder / "tls.key").read_bytes() == before and not (folder / "tls.crt").exists()
    done = run_scheduler("--issue", "--names")
    assert done.returncode == 1 and "'--names' looks like an option" in done.stderr
    done = run_scheduler("--issue", tmp_path / "other", "--names", "a b")
    assert done.returncode == 1 and "'a b': must be DNS names or addresses" in done.stderr
    done = run_scheduler("--names", "a")
    assert done.returncode == 1 and "needs --issue" in done.stderr


def test_expiry_of_a_certificate_is_reported(scheduler, tmp_path):
    folder = tmp_path / "s0"
    folder.mkdir()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "2", "-subj", "/CN=short", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
                    folder / "tls.key", "-out", folder / "tls.crt"], check=True, capture_output=True, timeout=30)
    s = scheduler()
    assert re.search(r"tls.crt: expires in [12] days", s.log.read_text())
    text = s.ask("GET", "/metrics")[1].decode()
    expires = float(text.split("\nallot_scheduler_certificate_expires_seconds ")[1].split()[0])
    assert 86400 < expires - time.time() < 3 * 86400
    # An expired certificate is still served, as there is no other; clients refuse it.
    openssl = ["openssl", "x509", "-in", folder / "tls.crt", "-signkey", folder / "tls.key", "-days", "-1", "-out",
               folder / "old.crt"]
    subprocess.run(openssl, check=True, capture_output=True, timeout=30)
    os.replace(folder / "old.crt", folder / "tls.crt")

    def is_refused():
        try:
            s.ask("GET", "/healthz")
        except ssl.SSLCertVerificationError as error:
            return "expired" in str(error)
        return False

    wait_until(is_refused, what="clients to refuse the expired certificate")
    (tmp_path / "s1").mkdir()
    for name in ("tls.crt", "tls.key"):
        shutil.copy(folder / name, tmp_path / "s1" / name)
    assert "tls.crt: expired: clients refuse it" in scheduler().log.read_text()


@pytest.mark.parametrize("settings, complaint", [
    ("https_listen = 0.0.0.0:9443\n", "https_listen: '0.0.0.0:9443' needs tls_certificate and tls_key"),
    ("tls_key = /k\n", "tls_certificate: must be set too, since tls_key is set"),
    ("http_listen = 0.0.0.0:9398\n", "can be reached from other machines without TLS"),
    ("http_listen = off\n", "set at least one of them"),
    ("http_listen = here\n", "settings:1: http_listen: 'here': must be off, an address"),
    ("guard_mounts = maybe\n", "guard_mounts: 'maybe': must be allow, warn, rewrite or deny"),
    ("body_limit = 1KiB\n", "body_limit: '1KiB': must be from 64KiB to 256MiB"),
    ("gpu_resource = gpu\n", "gpu_resource: 'gpu': must be a domain and a name"),
    ("cores_resource = nvidia.com/gpu\n", "cores_resource: 'nvidia.com/gpu': is already the value of gpu_resource"),
    ("colour = red\n", "colour: there is no such setting"),
])
def test_settings_that_are_refused(tmp_path, settings, complaint):
    (tmp_path / "settings").write_text(settings)
    for option in ("--check-config", "--config"):
        done = run_scheduler(option, tmp_path / "settings")
        assert done.returncode == 1 and complaint in done.stderr, done.stderr


def test_the_command_line(tmp_path):
    (tmp_path / "settings").write_text("# by hand\nhttp_listen = 127.0.0.1:9398 # here\n\nconnections = 8\n")
    assert run_scheduler("--check-config", tmp_path / "settings").stdout.endswith("settings: all settings are valid\n")
    text = run_scheduler("--help").stdout
    assert "guard_environment" in text and "--issue DIR" in text
    assert run_scheduler("--version").stdout.startswith("allot-scheduler ")
    assert run_scheduler("--nonsense").returncode == 1
    assert "'extra': unexpected argument" in run_scheduler("extra").stderr
    # The command line overrides the file.
    done = run_scheduler("--config", tmp_path / "settings", "--http-listen", "off")
    assert done.returncode == 1 and "set at least one of them" in done.stderr
    # HAMi's flags in HAMi's syntax: a switch needs no value.
    done = run_scheduler("--http_bind=127.0.0.1:0", "--debug", "--leader-elect=false", "--cert_file=/none.crt",
                         "--key_file", "/none.key", "--force-overwrite-default-scheduler", "--v=4")
    assert done.returncode == 1 and "https_listen: /none.crt: No such file" in done.stderr, done.stderr
    done = run_scheduler("--kube-qps=50")
    assert done.returncode == 1
    assert "command line: kube-qps: '50': allot has no such setting: allot-scheduler does not limit" in done.stderr
    done = run_scheduler("--legacy-metrics")
    assert done.returncode == 1 and "legacy-metrics: 'true': must be false" in done.stderr
    done = run_scheduler("--check-config", tmp_path / "missing")
    assert done.returncode == 1 and "missing: No such file" in done.stderr


def test_a_port_in_use_is_reported(scheduler, tmp_path):
    s = scheduler(tls=False)
    done = run_scheduler("--http-listen", s.http)
    assert done.returncode == 1 and f"http_listen: {s.http}: Address already in use" in done.stderr
    done = run_scheduler("--http-listen", "off", "--https-listen", "127.0.0.1:0", "--tls-certificate",
                         tmp_path / "none", "--tls-key", tmp_path / "none")
    assert done.returncode == 1 and "No such file" in done.stderr


def test_the_scheduler_ends_although_clients_are_connected(scheduler):
    s = scheduler()
    connections = [s.connect() for _ in range(4)]
    for connection in connections:
        assert s.ask("GET", "/healthz", connection=connection)[0] == 200
    begun = time.monotonic()
    s.stop()
    assert time.monotonic() - begun < 10
    for connection in connections:
        connection.close()
