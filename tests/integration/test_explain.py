"""allot explain without a cluster: on a machine without Kubernetes, and with an allot-scheduler that knows no cluster."""

import os
import subprocess

import pytest

from machines import BUILD
from scheduler import Scheduler


def explain(*arguments, **environment):
    known = {name: value for name, value in os.environ.items()
             if name not in ("KUBECONFIG", "HOME") and not name.startswith("KUBERNETES_")}
    return subprocess.run([BUILD / "allot", "explain", *map(str, arguments)], capture_output=True, text=True, timeout=60,
                          check=False, env={**known, **environment})


@pytest.mark.parametrize("options", [(), ("--json",), ("--node", "n", "-n", "space")])
def test_a_machine_without_kubernetes(tmp_path, options):
    for environment in ({"HOME": str(tmp_path)}, {}, {"KUBECONFIG": f"{tmp_path}/a:{tmp_path}/b"}):
        done = explain("pod", *options, **environment)
        assert done.returncode == 1 and done.stdout == ""
        assert done.stderr == ("allot: explain: no Kubernetes: there is no kubeconfig in KUBECONFIG or ~/.kube/config, and "
                               "this program does not run in a pod; name a kubeconfig by --kubeconfig, or allot-scheduler by --server\n")


def test_a_kubeconfig_of_an_unreachable_server(tmp_path):
    config = tmp_path / "config"
    config.write_text("""apiVersion: v1
clusters:
- name: c
  cluster:
    server: https://127.0.0.1:1
contexts:
- name: c
  context:
    cluster: c
    user: u
current-context: c
users:
- name: u
  user:
    token: t
""")
    for arguments, environment in ((("--kubeconfig", config), {}), ((), {"KUBECONFIG": f"{tmp_path}/none:{config}"})):
        done = explain("pod", *arguments, **environment)
        assert done.returncode == 1 and "127.0.0.1" in done.stderr, done.stderr
    done = explain("pod", "--kubeconfig", tmp_path / "none")
    assert done.returncode == 1 and "none: No such file" in done.stderr


@pytest.mark.parametrize("arguments,why", [
    ((), "write one pod's name"),
    (("a", "b"), "write one pod's name"),
    (("../secrets",), "POD: '../secrets': must be a name of a-z, 0-9, '-' and '.'"),
    (("p", "-n", "a/b"), "--namespace: 'a/b': must be a name"),
    (("p", "--node", "?"), "--node: '?': must be a name"),
    (("p", "--server", "host"), "--server: 'host': must be https://HOST:PORT"),
    (("p", "--server", "http://h", "--service", "a/b"), "--server: can't be used with --service"),
    (("p", "--ca", "file"), "--ca: only with --server"),
])
def test_bad_arguments_are_refused(arguments, why):
    done = explain(*arguments)
    assert done.returncode == 2 and why in done.stderr, done.stderr


def test_a_scheduler_without_a_cluster(tmp_path):
    scheduler = Scheduler(tmp_path / "s", tls=False)
    try:
        done = explain("pod", "--server", f"http://{scheduler.http}/")
        assert done.returncode == 1
        assert done.stderr == ("allot: explain: allot-scheduler: allot-scheduler does not know the cluster's nodes, because its "
                               "setting kube_api is off: set it to in-cluster or to a kubeconfig\n")
    finally:
        scheduler.stop()


def test_a_server_without_the_path(tmp_path):
    scheduler = Scheduler(tmp_path / "s", tls=False)
    try:
        done = explain("pod", "--server", f"http://{scheduler.http}/elsewhere")
        assert done.returncode == 1 and "404" in done.stderr, done.stderr
    finally:
        scheduler.stop()
