"""Starts a Kubernetes API server for a test: a real etcd and kube-apiserver on loopback, with certificates, tokens and keys
in the test's directory. Ends only the processes that it started."""

import base64
import json
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request

ADMIN_TOKEN = "admin-of-the-test"
ALLOTD_TOKEN = "allotd-of-the-test"
SCHEDULER_TOKEN = "scheduler-of-the-test"

# The rights of allotd: exactly those of its manifest.
ALLOTD_RULES = [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch", "patch"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "patch"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
]
# Its rights if it is only a DRA driver.
ALLOTD_DRA_RULES = [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]},
    {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"],
     "verbs": ["list", "watch", "create", "update", "delete"]},
    {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"], "verbs": ["get"]},
]

# The rights of allot-scheduler.
SCHEDULER_RULES = [
    {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list", "watch", "patch"]},
    {"apiGroups": [""], "resources": ["resourcequotas"], "verbs": ["list", "watch"]},
    {"apiGroups": [""], "resources": ["pods/binding", "pods/eviction"], "verbs": ["create"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
     "verbs": ["get", "list", "watch", "create", "patch"]},
]
# Its additional rights if it converts limits to claims.
CLAIM_MAKER_RULES = [
    {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaimtemplates"],
     "verbs": ["list", "create", "patch", "delete"]},
    {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"], "verbs": ["list"]},
]


class ApiError(Exception):
    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status = status


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=30)


class Cluster:
    def __init__(self, programs, directory, gates="", allotd_rules=(*ALLOTD_RULES, *ALLOTD_DRA_RULES), apis=""):
        """`gates`: feature gates of the API server and of the controllers and plain scheduler, as in --feature-gates. `apis`:
        APIs that are not served by default, as in --runtime-config."""
        self.allotd_rules = list(allotd_rules)
        self.gates = [f"--feature-gates={gates}"] if gates else []
        self.apis = [f"--runtime-config={apis}"] if apis else []
        self.programs = programs
        self.directory = directory
        self.started = {}
        self.etcd_port, self.etcd_peer_port, self.port = free_ports(3)
        self.url = f"https://127.0.0.1:{self.port}"

    # ---- files ----

    def path(self, name):
        return self.directory / name

    def make_certificate(self, name, subject, extensions):
        """Writes NAME.key and NAME.crt, signed by the test's authority."""
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", subject,
                "-keyout", self.path(f"{name}.key"), "-out", self.path(f"{name}.csr"))
        self.path(f"{name}.ext").write_text(extensions)
        openssl("x509", "-req", "-days", "2", "-in", self.path(f"{name}.csr"), "-CA", self.path("ca.crt"),
                "-CAkey", self.path("ca.key"), "-CAcreateserial", "-extfile", self.path(f"{name}.ext"),
                "-out", self.path(f"{name}.crt"))

    def make_files(self):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                "2", "-subj", "/CN=authority of the test", "-keyout", self.path("ca.key"), "-out",
                self.path("ca.crt"))
        self.make_certificate("server", "/CN=kube-apiserver", "subjectAltName=IP:127.0.0.1\n")
        self.make_certificate("allotd", "/O=allot/CN=allotd", "extendedKeyUsage=clientAuth\n")
        openssl("genrsa", "-out", self.path("accounts.key"), "2048")
        self.path("tokens.csv").write_text(f'{ADMIN_TOKEN},admin,1,"system:masters"\n'
                                           f'{ALLOTD_TOKEN},allotd,2,"allot"\n'
                                           f'{SCHEDULER_TOKEN},allot-scheduler,3,"allot"\n')

    def kubeconfig(self, name, port=None, user=None, cluster=None):
        """Writes a kubeconfig as kubeadm does, and returns its path. It has allotd's token unless `user` says otherwise."""
        authority = base64.b64encode(self.path("ca.crt").read_bytes()).decode()
        cluster = cluster or f"certificate-authority-data: {authority}"
        user = user or f"token: {ALLOTD_TOKEN}"
        path = self.path(name)
        path.write_text(f"""apiVersion: v1
kind: Config
clusters:
- cluster:
    {cluster}
    server: https://127.0.0.1:{port or self.port}
  name: test
contexts:
- context:
    cluster: test
    user: allotd
  name: allotd@test
current-context: allotd@test
preferences: {{}}
users:
- name: allotd
  user:
    {user}
""")
        return path

    # ---- processes ----

    def launch(self, name, *arguments):
        log = open(self.path(f"{name}.log"), "ab")
        with log:
            self.started[name] = subprocess.Popen([self.programs / name, *arguments], stdin=subprocess.DEVNULL,
                                                  stdout=log, stderr=log, start_new_session=True)

    def launch_etcd(self):
        clients = f"http://127.0.0.1:{self.etcd_port}"
        peers = f"http://127.0.0.1:{self.etcd_peer_port}"
        self.launch("etcd", "--data-dir", self.path("etcd"), "--listen-client-urls", clients,
                    "--advertise-client-urls", clients, "--listen-peer-urls", peers,
                    "--initial-advertise-peer-urls", peers, "--initial-cluster", f"default={peers}",
                    "--unsafe-no-fsync", "--log-level", "warn")

    def launch_apiserver(self):
        self.launch(
            "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            f"--secure-port={self.port}", "--bind-address=127.0.0.1", "--advertise-address=192.0.2.1",
            "--endpoint-reconciler-type=none", f"--tls-cert-file={self.path('server.crt')}",
            f"--tls-private-key-file={self.path('server.key')}", f"--client-ca-file={self.path('ca.crt')}",
            f"--token-auth-file={self.path('tokens.csv')}", "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.96.0.0/24", "--allow-privileged=true",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.path('accounts.key')}",
            f"--service-account-signing-key-file={self.path('accounts.key')}",
            # No controller here creates service accounts for pods.
            "--disable-admission-plugins=ServiceAccount", "--profiling=false", *self.gates, *self.apis)

    def launch_scheduler(self, extender, name="allot-scheduler", timeout_s=30, tls=None):
        """Runs kube-scheduler as the chart configures it, for pods of that schedulerName. `tls`: the extender's tlsConfig."""
        from charts import kube_scheduler_configuration
        config = kube_scheduler_configuration(
            self, self.directory,
            {"urlPrefix": extender, "weight": 10, "httpTimeout": f"{timeout_s}s",
             **({"enableHTTPS": True, "tlsConfig": tls} if tls else {})},
            profiles=[{"schedulerName": name}])
        self.launch("kube-scheduler", "--config", config, "--secure-port=0", "--authentication-skip-lookup=true")

    def launch_controllers(self, controllers):
        """Runs kube-controller-manager with these controllers, which commas separate."""
        config = self.kubeconfig("controllers.conf", user=f"token: {ADMIN_TOKEN}")
        self.launch("kube-controller-manager", "--kubeconfig", config, f"--controllers={controllers}",
                    "--leader-elect=false", "--secure-port=0", *self.gates)

    def launch_plain_scheduler(self):
        """Runs kube-scheduler with its default configuration."""
        config = self.kubeconfig("scheduler.conf", user=f"token: {ADMIN_TOKEN}")
        self.launch("kube-scheduler", "--kubeconfig", config, "--leader-elect=false", "--secure-port=0",
                    "--authentication-skip-lookup=true", *self.gates)

    def end(self, name, how=signal.SIGTERM):
        process = self.started.pop(name, None)
        if process:
            process.send_signal(how)
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def wait_until_ready(self, seconds=120):
        """Waits for the API server. Its first start on a busy machine may take long."""
        deadline = time.monotonic() + seconds
        while True:
            for name, process in self.started.items():
                if process.poll() is not None:
                    raise RuntimeError(f"{name} ended: " +
                                       self.path(f"{name}.log").read_text(errors="replace")[-2000:])
            try:
                self.request("GET", "/readyz", raw=True)
                return
            except (OSError, ApiError) as error:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"kube-apiserver is not ready: {error}") from error
            time.sleep(0.1)

    def start(self):
        self.make_files()
        self.launch_etcd()
        self.launch_apiserver()
        self.wait_until_ready()
        self.permit("allotd", self.allotd_rules)
        self.permit("allot-scheduler", SCHEDULER_RULES)

    def permit(self, name, rules, user=None):
        """Gives these rights to the user `user`, by default `name`, and to the service account `name` in "default"."""
        group = "rbac.authorization.k8s.io"
        for kind, body in (("clusterroles", {"rules": rules}),
                           ("clusterrolebindings",
                            {"roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
                             "subjects": [{"apiGroup": group, "kind": "User", "name": user or name},
                                          {"kind": "ServiceAccount", "name": name, "namespace": "default"}]})):
            self.request("POST", f"/apis/{group}/v1/{kind}", {"metadata": {"name": name}, **body})

    def account_token(self):
        """A token of the service account that has allotd's rights."""
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        self.request("POST", accounts, {"metadata": {"name": "allotd"}})
        return self.request("POST", f"{accounts}/allotd/token", {"spec": {}})["status"]["token"]

    def restart_apiserver(self, between=lambda: None):
        self.end("kube-apiserver", signal.SIGKILL)
        between()
        self.launch_apiserver()
        self.wait_until_ready()

    def compact(self, version):
        """Makes etcd discard the history before this version, as the API server does every five minutes."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.etcd_port}/v3/kv/compaction", method="POST",
                                         data=json.dumps({"revision": version, "physical": True}).encode())
        with urllib.request.urlopen(request, timeout=20):
            pass

    def stop(self):
        for name in list(self.started)[::-1]:
            self.end(name, signal.SIGKILL)

    # ---- the API, as the administrator ----

    def send(self, method, path, data, kind, query="", token=ADMIN_TOKEN):
        """Sends these bytes and returns those of the answer. Raises ApiError for an HTTP error."""
        context = ssl.create_default_context(cafile=self.path("ca.crt"))
        request = urllib.request.Request(
            self.url + path + query, method=method, data=data,
            headers={"Authorization": f"Bearer {token}", "Content-Type": kind, "Accept": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=120, context=context) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            raise ApiError(error.code, error.read().decode(errors="replace")) from error

    def request(self, method, path, body=None, raw=False, kind="application/json", query="",
                token=ADMIN_TOKEN):
        text = self.send(method, path, None if body is None else json.dumps(body).encode(), kind, query, token)
        return text if raw else json.loads(text)

    def make_node(self, name, annotations=None, labels=None):
        return self.request("POST", "/api/v1/nodes", {"metadata": {
            "name": name, "annotations": annotations or {}, "labels": labels or {}}})

    def make_gpu_node(self, name, gpus, slices=10, labels=None, serves=None):
        """A node without a kubelet that pods may be bound to. `gpus`: fields of each GPU in the annotation, {"id": ..};
        `serves`: the resources that its kubelet would report, by default those of HAMi's vocabulary."""
        register = [{"index": i, "count": slices, "devmem": 81920, "devcore": 100, "type": "NVIDIA-H200", "numa": 0,
                     "mode": "hami-core", "health": True, **gpu} for i, gpu in enumerate(gpus)]
        self.make_node(name, {"hami.io/node-nvidia-register": json.dumps(register)}, {"gpu": "on", **(labels or {})})
        amounts = {"cpu": "64", "memory": "512Gi", "pods": "500",
                   **(serves or {"nvidia.com/gpu": str(slices * len(gpus))})}
        path = f"/api/v1/nodes/{name}"
        self.set_status(name, {"capacity": amounts, "allocatable": amounts,
                               "conditions": [{"type": "Ready", "status": "True"}]})
        # Admission taints a new node. The controller that would remove the taint does not run here.
        self.request("PATCH", path, {"spec": {"taints": None}}, kind="application/merge-patch+json")

    def set_status(self, name, status):
        """Patches the node's status, as a kubelet does."""
        self.request("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, kind="application/merge-patch+json")

    def node(self, name):
        return self.request("GET", f"/api/v1/nodes/{name}")

    def annotations(self, name):
        return self.node(name)["metadata"].get("annotations", {})

    def labels(self, name):
        return self.node(name)["metadata"].get("labels", {})

    def patch(self, path, metadata):
        return self.request("PATCH", path, {"metadata": metadata}, kind="application/merge-patch+json")

    def make_pod(self, name, node=None, annotations=None, containers=("main",), init=(), in_namespace="default",
                 limits=None, more=None):
        """`limits`: {container: {resource: amount}}. `more`: other fields of the spec."""
        def make(names):
            return [{"name": one, "image": "none", "resources": {"limits": (limits or {}).get(one, {})}}
                    for one in names]

        spec = {"containers": make(containers), "initContainers": make(init), **(more or {})}
        if node:
            spec["nodeName"] = node
        return self.request("POST", f"/api/v1/namespaces/{in_namespace}/pods",
                            {"metadata": {"name": name, "annotations": annotations or {}}, "spec": spec})

    def pod(self, name, in_namespace="default"):
        return self.request("GET", f"/api/v1/namespaces/{in_namespace}/pods/{name}")

    def delete_pod(self, name, in_namespace="default"):
        return self.request("DELETE", f"/api/v1/namespaces/{in_namespace}/pods/{name}",
                            query="?gracePeriodSeconds=0")

    def delete_pods(self):
        """Deletes all pods of all namespaces immediately; no kubelet has to confirm it."""
        for namespace in self.request("GET", "/api/v1/namespaces")["items"]:
            self.request("DELETE", f"/api/v1/namespaces/{namespace['metadata']['name']}/pods",
                         query="?gracePeriodSeconds=0")

    def events(self, in_namespace="default", about=None):
        """`about`: only those of the object with this name."""
        query = f"?fieldSelector=involvedObject.name={about}" if about else ""
        return self.request("GET", f"/api/v1/namespaces/{in_namespace}/events", query=query)["items"]
