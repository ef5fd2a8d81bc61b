"""Shared by the tests of the daemon's web page: a daemon that serves the page, and requests like those of the page's script."""

import contextlib
import http.client
import json
import re
import socket

from scrape import UnixConnection
from servers import start_servers

READ = "a-token-that-only-reads"
CHANGE = "a-token-that-also-changes"


def page_in(log):
    """Returns the page's URL, from the log of allotd or allot-scheduler; None if the log does not have it (yet)."""
    found = re.search(r"page is served at (\S+),", log)
    return found and found[1]


class Page:
    """The page of a machine's daemon, with tokens that allow reading and changes."""

    def __init__(self, machine, directory, settings="", card=""):
        self.read_file, self.change_file = directory / "read-token", directory / "change-token"
        self.read_file.write_text(READ + "\n")
        self.change_file.write_text(CHANGE + "\n")
        self.said = start_servers(machine, directory, f"web_listen = 127.0.0.1:0\nweb_token_file = {self.read_file}\n"
                                                      f"web_change_token_file = {self.change_file}\n{settings}", card)
        self.url = page_in(self.said)
        self.address = self.url.split("/")[2]

    def ask(self, path, method="GET", token=READ, body=None, **headers):
        return ask(self.address, path, method, token, body, **headers)

    def state(self, token=READ):
        status, _, text = self.ask("/api/state", token=token)
        assert status == 200, text
        return json.loads(text)

    def change(self, operation, request, token=CHANGE, **headers):
        status, _, text = self.ask(f"/api/{operation}", "POST", token, json.dumps(request), **headers)
        return status, text

    def events(self, **more):
        return Events(self.address, **more)


@contextlib.contextmanager
def hold_tenants(machine, tenants):
    """Within this context the daemon has these tenants, without processes. Each is (name, index of its GPU, bytes)."""
    with socket.socket(socket.AF_UNIX) as control, control.makefile("rw") as lines:
        control.connect(str(machine.run_dir / "allotd.sock"))
        for name, index, memory_bytes in tenants:
            request = {"version": 1, "op": "create", "name": name, "hold": True,
                       "devices": [{"index": index, "memory_bytes": memory_bytes, "cores_pct": 3}]}
            lines.write(json.dumps(request) + "\n")
            lines.flush()
            assert json.loads(lines.readline())["ok"]
        yield


def ask(address, path, method="GET", token=None, body=None, **headers):
    """Returns status, headers and text of the answer."""
    if address.startswith("unix:"):
        connection = UnixConnection(address[len("unix:"):], 10)
    else:
        connection = http.client.HTTPConnection(address, timeout=10)
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    try:
        connection.request(method, path, body=body, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


class Events:
    """A reader of /events. next() returns the whole state after each event; told() returns the event itself."""

    def __init__(self, address, token=READ, receive_bytes=None):
        host, _, port = address.rpartition(":")
        self.socket = socket.socket()
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(20)
        self.socket.connect((host, int(port)))
        self.socket.sendall(f"GET /events HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        self.answer = http.client.HTTPResponse(self.socket)
        self.tenants = {}

    def begin(self):
        self.answer.begin()
        return self.answer.status

    def next(self):
        """Returns the whole state after the next event, or None at the end of the stream."""
        state = self.told()
        if state is None:
            return None
        if "gone" not in state:
            self.tenants = {}
        for gone in state.pop("gone", []):
            del self.tenants[gone]
        self.tenants.update((tenant["id"], tenant) for tenant in state["tenants"])
        return {**state, "tenants": list(self.tenants.values())}

    def told(self):
        """Returns the next event: a whole state, or the differences from the state before. None: the stream has ended."""
        line = self.answer.readline()
        if not line:
            return None
        assert line.startswith(b"data: ") and self.answer.readline() == b"\n", line[:80]
        return json.loads(line[len(b"data: "):])

    def close(self):
        self.answer.close()
        self.socket.close()
