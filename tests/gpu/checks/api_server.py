"""A stand-in for Kubernetes' API server, with only what a DRA driver asks for: its node, its ResourceSlices, and claims. A
watch never reports a change. tests/k8s uses the real server."""

import contextlib
import http.server
import json
import threading
import urllib.parse

NODES = "/api/v1/nodes"
RESOURCES = "/apis/resource.k8s.io/v1"
SLICES = f"{RESOURCES}/resourceslices"
WATCH_S = 3600


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    objects = {}                        # {path: object}
    ended = threading.Event()

    def log_message(self, *_):
        """Suppresses the log."""

    def answer(self, status, thing):
        data = json.dumps(thing).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        address = urllib.parse.urlsplit(self.path)
        if "watch" in urllib.parse.parse_qs(address.query):
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.close_connection = True
            self.ended.wait(WATCH_S)
        elif address.path in self.objects:
            self.answer(200, self.objects[address.path])
        elif address.path in (NODES, SLICES):
            items = [thing for path, thing in self.objects.items() if path.startswith(address.path + "/")]
            self.answer(200, {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": items})
        else:
            self.answer(404, {"kind": "Status", "code": 404, "message": "not found"})

    def write(self, status):
        thing = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        address = urllib.parse.urlsplit(self.path)
        name = thing["metadata"].get("name", "")
        path = address.path if address.path in self.objects else f"{address.path}/{name}"
        if self.command != "PATCH":
            thing["metadata"]["resourceVersion"] = str(len(self.objects) + 1)
            self.objects[path] = thing
        self.answer(status, self.objects.get(path, {}))

    def do_POST(self):
        self.write(201)

    def do_PUT(self):
        self.write(200)

    do_PATCH = do_PUT


def kubeconfig(port):
    return {"apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "users": [{"name": "u", "user": {"token": "not-asked-for"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}


@contextlib.contextmanager
def serve():
    """Yields ({path: object}, port); the caller may change the dictionary."""
    handler = type("Own", (Handler,), {"objects": {}, "ended": threading.Event()})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield handler.objects, server.server_port
    finally:
        handler.ended.set()
        server.shutdown()
        server.server_close()
