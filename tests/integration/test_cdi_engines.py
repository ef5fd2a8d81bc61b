"""docker and containerd with a device that `allot cdi` wrote, without Kubernetes. Each engine runs with the test's own daemons,
folders and CDI specs. podman is in test_cdi.py. Tests of an engine that is missing or too old for CDI are skipped, with the
reason."""

import os
import shutil

import pytest
from machines import wait_until
from engines import Containerd, Docker, too_old_for_cdi
from held import GOVERNED, compile_c, link_with_driver
from test_cdi import Devices


class CdiDocker(Docker):
    def settings(self):
        return {"features": {"cdi": True}, "cdi-spec-dirs": [str(self.specs)]}

    @classmethod
    def why_not(cls):
        return super().why_not() or too_old_for_cdi("dockerd", 25, 0)


class CdiContainerd(Containerd):
    def settings(self):
        return f'enable_cdi = true\ncdi_spec_dirs = ["{self.specs}"]'

    @classmethod
    def why_not(cls):
        return super().why_not() or too_old_for_cdi("containerd", 1, 7)

    def run(self, name, command, **more):
        return super().run(name, command, pod=name, **more)     # a pod each


@pytest.fixture(scope="module", params=[CdiDocker, CdiContainerd], ids=["docker", "containerd"])
def engine(request, tmp_path_factory):
    why = request.param.why_not()
    if why:
        pytest.skip(f"{request.param.kind}: {why}")
    made = request.param(tmp_path_factory.mktemp("c") / "e")
    made.specs = made.directory / "cdi"
    made.specs.mkdir()
    try:
        made.start()
        made.run("probe", ["/bin/sleep", "1000"])
    except RuntimeError as error:
        made.__exit__()
        pytest.skip(f"{request.param.kind} does not work here: {error}")
    yield made
    made.__exit__()


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    out = tmp_path_factory.mktemp("programs")
    return {"way": compile_c(out / "way", "way.c", "-ldl"),
            "hoard": compile_c(out / "hoard", *link_with_driver(), "hoard.c")}


@pytest.fixture
def start(engine, machine, tmp_path, programs):
    """Starts a container with a device of these terms. The device's files are in the test's directory."""
    devices = Devices(machine, tmp_path)
    shared = {os.path.dirname(path) for path in programs.values()} | {tmp_path}
    started = []

    def begin(name, *command, terms=("--memory", "4GiB", "--cores", "30")):
        devices.create(name, *terms)
        shutil.copy(devices.path(name), engine.specs)
        container = engine.run(name, command, shared=shared, devices=[f"allot.dev/gpu={name}"])
        started.append((name, engine.made[-1]))
        return container

    begin.devices = devices
    yield begin
    for name, made in started:
        engine.remove(made)
        engine.made.remove(made)
        (engine.specs / f"allot-{name}.json").unlink()
        # Its processes may exist for a moment longer.
        assert devices.cdi("remove", name, "--force").returncode == 0


def device_of(start, name):
    return start.devices.machine.tenants()[name]["devices"][0]


def test_a_container_has_its_quota(engine, start, programs, tmp_path):
    """Under 4 GiB its program behaves as in any tenant, though the container got no option but the device."""
    output = tmp_path / "output"
    start("web", "/bin/sh", "-c", f"{programs['way']} local >{output}; echo over >>{output}")
    wait_until(lambda: output.exists() and "over" in output.read_text(), what="the container's program")
    assert output.read_text().splitlines() == [*GOVERNED, "over"]
    assert device_of(start, "web")["denied"] == 1
    assert device_of(start, "web")["cores_pct"] == 30


def test_exec_belongs_to_the_tenant(engine, start, programs):
    """Also with a wrong socket in its environment. The memory of the container's own process counts."""
    container = start("web", "/bin/sh", "-c", f"{programs['hoard']} 2500 2500 0 60000")
    wait_until(lambda: device_of(start, "web")["memory_used_bytes"] >= 2500 << 20, what="memory in use")
    environment = ["/usr/bin/env", "LD_LIBRARY_PATH=/run/allot/sim", "ALLOT_SIM_SOCKET=/run/allot/sim.sock"]
    for lie in ([], ["ALLOT_SOCKET="], ["ALLOT_SOCKET=/tmp/no.sock"]):
        lines, _ = engine.exec(container, *environment, *lie, programs["way"], "local")
        assert lines[:2] == ["cuInit 0", "fits 2"], lines


def test_two_containers_have_a_quota_each(engine, start, programs):
    containers = {name: start(name, "/bin/sleep", "1000", terms=("--memory", size))
                  for name, size in (("small", "4GiB"), ("large", "40GiB"))}
    environment = ["/usr/bin/env", "LD_LIBRARY_PATH=/run/allot/sim", "ALLOT_SIM_SOCKET=/run/allot/sim.sock"]
    output = {name: engine.exec(container, *environment, programs["way"], "local")[0]
              for name, container in containers.items()}
    assert output["small"] == GOVERNED
    assert output["large"][:3] == ["cuInit 0", "fits 0", "too much 0"], output["large"]
    assert [device_of(start, name)["denied"] for name in ("small", "large")] == [1, 0]
