"""Fixtures for all tests against a real API server."""

import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "integration")]

import stillness  # noqa: E402
from cluster import Cluster  # noqa: E402


def pytest_configure(config):
    stillness.pytest_configure(config)


@pytest.fixture(scope="session")
def build_programs():
    """build_programs(NAME...) builds programs of Kubernetes or etcd and returns their folder. Skips the test if it can't."""
    def build(*names):
        done = subprocess.run([HERE / "build", *names], capture_output=True, text=True, check=False)
        if done.returncode == 77:
            pytest.skip(done.stderr.strip().splitlines()[-1])
        assert done.returncode == 0, done.stderr
        return pathlib.Path(done.stdout.strip())

    return build


@pytest.fixture(scope="session")
def programs(build_programs):
    return build_programs("etcd", "kube-apiserver")


@pytest.fixture(scope="session")
def shared_cluster(programs, tmp_path_factory):
    """One API server for all files. DRAConsumableCapacity is off, which is on by default from Kubernetes 1.36."""
    cluster = Cluster(programs, tmp_path_factory.mktemp("cluster"), "DRAConsumableCapacity=false")
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def cluster(shared_cluster):
    """The cluster, without the pods of other files: pod names need to be unique only within a file. Nodes are kept,
    so each test uses its own nodes."""
    yield shared_cluster
    shared_cluster.delete_pods()
