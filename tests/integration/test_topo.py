"""The distances between GPUs: from the simulated description, through NVML and the daemon, to `allot topo` and to the choice of
GPUs for a tenant that wants several."""

import json
import socket

import pytest

from machines import GIB, make_machine
from sim_peers import start_sim  # noqa: F401

LAYOUTS = ["dgx-1v", "dgx-a100", "pcie", "mixed"]


def topo(machine, *options):
    done = machine.allot("topo", *machine.sim, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def machine_of(tmp_path_factory):
    """make(spec) makes a machine from that description of the simulator; it is removed with the test."""
    machines = []

    def make(spec):
        machines.append(make_machine(tmp_path_factory, spec))
        return machines[-1]

    yield make
    for machine in machines:
        machine.clean()


def links_of(reply):
    return {tuple(link["devices"]): link for link in reply["links"]}


def matrix(text):
    """Parses the table of allot topo: {(a, b): link}."""
    lines = text.split("\n\n")[1].splitlines()
    return {(a, b): cell for a, line in enumerate(lines[1:])
            for b, cell in enumerate(line.split()[1:-1])}


def test_dgx_1v(machine_of):
    machine = machine_of("dgx-1v")
    reply = json.loads(topo(machine, "--json"))
    links = links_of(reply)
    assert len(links) == 28
    assert [links[0, i]["nvlinks"] for i in range(1, 8)] == [1, 1, 2, 2, 0, 0, 0]
    assert links[0, 1]["pcie"] == "PIX" and links[0, 1]["score"] == 150
    assert links[0, 2]["pcie"] == "PHB" and links[0, 4]["pcie"] == "SYS"
    assert links[0, 5] == {"devices": [0, 5], "nvlinks": 0, "pcie": "SYS", "score": 10}
    assert all(sum(link["nvlinks"] for pair, link in links.items() if card in pair) == 6
               for card in range(8))
    assert [d["numa"] for d in reply["devices"]] == [0] * 4 + [1] * 4
    tree = reply["tree"]
    assert tree["devices"] == list(range(8)) and tree["numa"] is None
    assert [group["numa"] for group in tree["groups"]] == [0, 1]
    assert [part["devices"] for part in tree["groups"][0]["groups"]] == [[0, 1], [2, 3]]
    # The table agrees with the JSON.
    cells = matrix(topo(machine))
    for (a, b), link in links.items():
        expected = f"NV{link['nvlinks']}" if link["nvlinks"] else link["pcie"]
        assert cells[a, b] == cells[b, a] == expected
    assert all(cells[i, i] == "X" for i in range(8))


def test_switched_and_mixed(machine_of):
    a100 = json.loads(topo(machine_of("dgx-a100"), "--json"))
    assert {link["nvlinks"] for link in a100["links"]} == {12}
    assert links_of(a100)[0, 1]["pcie"] == "PXB"
    mixed = links_of(json.loads(topo(machine_of("mixed"), "--json")))
    assert {pair for pair, link in mixed.items() if link["nvlinks"]} == {(0, 1), (2, 3)}
    assert mixed[4, 5]["pcie"] == "PIX" and mixed[4, 6]["pcie"] == "NODE"
    pcie = json.loads(topo(machine_of("pcie"), "--json"))
    assert not any(link["nvlinks"] for link in pcie["links"])


def test_no_numa_and_no_nvlink(machine_of, tmp_path):
    """The kernel of the machine reports no NUMA nodes, and no NVLink joins the GPUs."""
    spec = tmp_path / "plain"
    spec.write_text("[gpu]\nnuma = none\n[card]\nnuma = none\n")
    reply = json.loads(topo(machine_of(str(spec)), "--json"))
    assert [d["numa"] for d in reply["devices"]] == [None, None]
    assert links_of(reply)[0, 1] == {"devices": [0, 1], "nvlinks": 0, "pcie": "SYS", "score": 10}


def test_the_nearest_gpus_are_chosen(machine_of):
    """A tenant that wants several GPUs, and names none, gets those of the emptiest that are nearest to each other."""
    machine = machine_of("dgx-1v")
    topo(machine)  # starts the daemon
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(str(machine.run_dir / "allotd.sock"))
        stream = control.makefile("rw")

        def create(**more):
            stream.write(json.dumps({"version": 1, "op": "create", "hold": True, **more}) + "\n")
            stream.flush()
            reply = json.loads(stream.readline())
            assert reply["ok"], reply
            return [device["index"] for device in reply["devices"]]

        part = {"memory_bytes": GIB}
        assert create(devices=[part, part]) == [2, 3]
        assert create(devices=[part] * 4) == [4, 5, 6, 7]
        assert create(devices=[part, part]) == [0, 1]
        # Two are named; the third is the one of the emptiest that is nearest to these, by four links.
        assert create(devices=[{"index": 5, **part}, part, {"index": 7, **part}]) == [5, 6, 7]


def test_bad_input(machine):
    for options, status, message in [
            (["--sim", "dgx-2"], 1, "dgx-2"),
            (["--sim", "h200x17"], 1, "1 to 16 GPUs"),
            (["more"], 2, "'more': unexpected argument"),
            (["--jason"], 2, "--jason"),
            (["--run-dir", str(machine.base / "none")], 1, "none")]:
        done = machine.allot("topo", *options)
        assert done.returncode == status, (options, done)
        assert len(done.stderr.splitlines()) == 1 and message in done.stderr, done.stderr
        assert done.stderr.startswith("allot: topo: ")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_nvml_links_are_consistent(start_sim, layout):  # noqa: F811
    """NVML's answers about links agree with each other."""
    sim = start_sim(layout)
    sim.run("""
        pynvml.nvmlInit()
        h = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(8)]
        bus = [pynvml.nvmlDeviceGetPciInfo(d).busId for d in h]
        linked = 0
        for d in h:
            for link in range(18):
                try:
                    if not pynvml.nvmlDeviceGetNvLinkState(d, link):
                        continue
                except pynvml.NVMLError_NotSupported:
                    break
                end = pynvml.nvmlDeviceGetNvLinkRemotePciInfo(d, link).busId
                kind = pynvml.nvmlDeviceGetNvLinkRemoteDeviceType(d, link)
                assert (end in bus) == (kind == 0)
                linked += 1
        assert linked == %d, linked
        for a in range(8):
            for b in range(8):
                level = pynvml.nvmlDeviceGetTopologyCommonAncestor(h[a], h[b])
                assert level == pynvml.nvmlDeviceGetTopologyCommonAncestor(h[b], h[a])
                assert (level == 0) == (a == b)
        """ % {"dgx-1v": 48, "dgx-a100": 96, "pcie": 0, "mixed": 48}[layout])
