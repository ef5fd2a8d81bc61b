"""A stand-in for Kubernetes's API server. It serves lists and watches of nodes, pods and quotas, which a test can change. It
does not authenticate clients. tests/k8s uses the real server."""

import http.server
import json
import queue
import sys
import threading
import urllib.parse

KINDS = {"/api/v1/nodes": "Node", "/api/v1/pods": "Pod", "/api/v1/resourcequotas": "ResourceQuota"}


class Collection:
    def __init__(self, kind):
        self.kind = kind
        self.objects = {}
        self.watchers = []


class ApiServer:
    """Usage: `with ApiServer() as api: api.put("/api/v1/nodes", node)`. kubeconfig(path) writes a kubeconfig for it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.version = 1
        self.collections = {path: Collection(kind) for path, kind in KINDS.items()}
        handler = type("Handler", (Handler,), {"api": self})
        self.server = Server(("127.0.0.1", 0), handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        with self.lock:
            for collection in self.collections.values():
                for watcher in collection.watchers:
                    watcher.put(None)
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def kubeconfig(self, path):
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.server.server_port}"}}],
            "users": [{"name": "u", "user": {"token": "unchecked"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))
        return path

    def put(self, path, thing):
        """Creates an object, or replaces the one with the same namespace and name."""
        meta = thing["metadata"]
        key = (meta.get("namespace", ""), meta["name"])
        with self.lock:
            collection = self.collections[path]
            self.version += 1
            meta["resourceVersion"] = str(self.version)
            meta.setdefault("uid", "-".join(filter(None, key)))
            event = "MODIFIED" if key in collection.objects else "ADDED"
            collection.objects[key] = thing
            self.notify(collection, event, thing)

    def drop(self, path, name, namespace=""):
        with self.lock:
            collection = self.collections[path]
            self.version += 1
            thing = collection.objects.pop((namespace, name))
            thing["metadata"]["resourceVersion"] = str(self.version)
            self.notify(collection, "DELETED", thing)

    def notify(self, collection, event, thing):
        line = json.dumps({"type": event, "object": {"kind": collection.kind, "apiVersion": "v1", **thing}}) + "\n"
        for watcher in collection.watchers:
            watcher.put(line.encode())


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Ignores clients that close their connection."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: ApiServer

    def log_message(self, *_):
        pass

    def do_GET(self):
        address = urllib.parse.urlsplit(self.path)
        collection = self.api.collections.get(address.path)
        if not collection:
            self.answer(404, {"kind": "Status", "code": 404, "message": "not found"})
        elif "watch" in urllib.parse.parse_qs(address.query):
            self.watch(collection)
        else:
            self.list(collection, urllib.parse.parse_qs(address.query))

    def list(self, collection, query):
        """Returns one page. An object that changes between two pages may be missing, or be listed twice."""
        begin, most = int(query.get("continue", ["0"])[0]), int(query.get("limit", ["500"])[0])
        with self.api.lock:
            items, version = list(collection.objects.values()), self.api.version
        end = begin + most
        more = {"continue": str(end)} if end < len(items) else {}
        self.answer(200, {"kind": f"{collection.kind}List", "apiVersion": "v1",
                          "metadata": {"resourceVersion": str(version), **more}, "items": items[begin:end]})

    def do_POST(self):
        """Accepts events and discards them."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer(201, {})

    do_PATCH = do_POST

    def answer(self, status, thing):
        data = json.dumps(thing).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def watch(self, collection):
        """Streams changes from now on. First it sends the objects that changed since the client's resourceVersion, as MODIFIED;
        objects that were deleted before the watch are not reported."""
        mine = queue.Queue()
        since = int(urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)["resourceVersion"][0])
        with self.api.lock:
            for thing in collection.objects.values():
                if int(thing["metadata"]["resourceVersion"]) > since:
                    self.api.notify(type("One", (), {"kind": collection.kind, "watchers": [mine]}), "MODIFIED", thing)
            collection.watchers.append(mine)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            while (line := mine.get()) is not None:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                self.wfile.flush()
        except OSError:
            pass
        finally:
            self.close_connection = True
            with self.api.lock:
                collection.watchers.remove(mine)


# ---- objects ----

def node(name, gpus=8, memory_mib=81920, kind="NVIDIA-H100", **more):
    """Returns a node whose annotation lists its GPUs, as allotd and HAMi write it. `more`: fields of the first GPU."""
    announced = [{"id": f"GPU-{name}-{i}", "index": i, "count": 10, "devmem": memory_mib, "devcore": 100, "type": kind,
                  "numa": i // 4, "mode": "hami-core", "health": True, **(more if i == 0 else {})} for i in range(gpus)]
    return {"metadata": {"name": name, "annotations": {"hami.io/node-nvidia-register": json.dumps(announced)}},
            "spec": {}, "status": {}}


def pod(name, namespace="default", limits=None, node=None, shares=None, **meta):
    """Returns a pod. `shares`: its parts of the GPUs of `node`, such as "GPU-n-0,NVIDIA,MIB,PCT:;"."""
    annotations = {"hami.io/vgpu-node": node, "hami.io/vgpu-devices-allocated": shares,
                   "hami.io/bind-phase": "success"} if shares else {}
    return {"metadata": {"name": name, "namespace": namespace, "annotations": annotations, **meta},
            "spec": {"containers": [{"name": "main", "image": "i", "resources": {"limits": limits or {"nvidia.com/gpu": "1"}}}],
                     **({"nodeName": node} if node else {})},
            "status": {"phase": "Running" if node else "Pending"}}
