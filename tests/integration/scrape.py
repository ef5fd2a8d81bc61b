"""Reads the daemon's metrics as Prometheus does: over HTTP, with Prometheus's own parser."""

import http.client
import re
import socket

import pytest

from machines import wait_until
from servers import start_servers

parser = pytest.importorskip("prometheus_client.parser")

TOKEN = "a-token-of-some-length"


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("allot", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def request(address, path="/metrics", method="GET", headers=None, body=None):
    """Returns status, headers and text of the answer. `address`: as in the setting metrics_listen."""
    if address.startswith("unix:"):
        connection = UnixConnection(address[len("unix:"):], 10)
    else:
        connection = http.client.HTTPConnection(address, timeout=10)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


class Page:
    """The samples of a page of metrics."""

    def __init__(self, text):
        self.samples = {}
        self.types = {}
        for family in parser.text_string_to_metric_families(text):
            for sample in family.samples:
                key = (sample.name, tuple(sorted(sample.labels.items())))
                assert key not in self.samples, f"{key} is there twice"
                self.samples[key] = sample.value
                self.types[sample.name] = family.type

    def all(self, name, **labels):
        """Returns [(labels, value)] of the samples that have these labels among theirs."""
        wanted = set(labels.items())
        return [(dict(found), value) for (other, found), value in self.samples.items()
                if other == name and wanted <= set(found)]

    def value(self, name, **labels):
        """Returns the value of the one sample with these labels, or None if there is none."""
        found = self.all(name, **labels)
        assert len(found) <= 1, found
        return found[0][1] if found else None

    def label(self, name, label, **labels):
        """Returns the value of `label` in the one sample whose value is 1, such as the current state or reason."""
        true = [found[label] for found, value in self.all(name, **labels) if value == 1]
        assert len(true) == 1, true
        return true[0]


def scrape(address, **more):
    status, headers, text = request(address, **more)
    assert status == 200, text
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert int(headers["Content-Length"]) == len(text.encode())
    return Page(text)


def wait_for_page(address, condition, what="a page of metrics"):
    """Waits for a page for which condition(page) is true, and returns it. The daemon makes at most ten pages a second, so a
    change appears after 0.1 s at most."""
    def read():
        page = scrape(address)
        return page if condition(page) else None

    return wait_until(read, what=what)


def address_in(log):
    """Returns the address at which a daemon serves metrics, from its log."""
    return re.search(r"metrics are served at (\S+)", log).group(1)


def listen(machine, tmp_path, settings=""):
    """Starts the machine's daemon with metrics on a port that the kernel chooses. Returns the address."""
    log = start_servers(machine, tmp_path, f"metrics_listen = 127.0.0.1:0\n{settings}")
    return address_in(log)
