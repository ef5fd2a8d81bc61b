"""The effect of the choice of a job's GPUs: the speed of copies between two GPUs over each kind of link of this machine, and
between the two that the allocator chooses; copies around rings of four; and an all-reduce, if PyTorch is installed."""

import importlib.util
import itertools
import json
import os
import sys

from harness import plot
from harness.build import REPOSITORY
from harness.result import Row, at_least

MEMORY = "4GiB"
MIB, QUICK_MIB = 256, 64
RING = 4
NEAR = 0.95         # of the fastest link's speed, which the chosen pair must reach
ALL_REDUCE = os.path.join(REPOSITORY, "bench", "all_reduce.py")


def seconds_of(settings):
    return 15 if settings.quick else 90


class Topology:
    """The machine's GPUs without MIG, and how near each is to each other one."""

    def __init__(self, machine):
        topology = json.loads(machine.tell("topo", "--json"))
        self.uuid = {d["index"]: d["uuid"] for d in topology["devices"] if d["uuid"].startswith("GPU-")}
        self.link = {tuple(link["devices"]): link for link in topology["links"]
                     if set(link["devices"]) <= self.uuid.keys()}

    def link_name(self, pair):
        link = self.link[tuple(sorted(pair))]
        return f"NV{link['nvlinks']}" if link["nvlinks"] else link["pcie"] or "unknown"

    def score(self, gpus):
        return sum(self.link[pair]["score"] for pair in itertools.combinations(sorted(gpus), 2))

    def has_choice(self, count):
        """Whether sets of `count` GPUs differ in their links. If not, any choice is as good as another."""
        return len({(self.score(gpus), *self.ring_scores(self.ring(gpus)))
                    for gpus in itertools.combinations(sorted(self.uuid), count)}) > 1

    def farthest(self, count):
        return min(itertools.combinations(sorted(self.uuid), count), key=self.score)

    def nearest_ring(self, count):
        """The GPUs whose ring has the best worst link."""
        return max(itertools.combinations(sorted(self.uuid), count),
                   key=lambda gpus: self.ring_scores(self.ring(gpus)))

    def pair_of_each_link(self):
        """{link: pair of GPUs} for each kind of link that the machine has, nearest first."""
        found = {}
        for pair in sorted(self.link, key=lambda pair: -self.link[pair]["score"]):
            found.setdefault(self.link_name(pair), pair)
        return found

    def ring(self, gpus):
        """The order of these GPUs around a ring in which the worst link is best."""
        first, *rest = sorted(gpus)
        return max(([first, *order] for order in itertools.permutations(rest)), key=self.ring_scores)

    def ring_scores(self, ring):
        return sorted(self.link[tuple(sorted(step))]["score"] for step in steps(ring))


def steps(ring):
    return list(zip(ring, [*ring[1:], ring[0]]))


def copies(bench, topo, gpus, moves, tenant, options=()):
    """GiB a second of each move between two of `gpus`; the program sees only these GPUs, in that order."""
    size, seconds = (QUICK_MIB, "0.3") if bench.settings.quick else (MIB, "2")
    words = ["--mib", str(size), "--seconds", seconds, *options,
             *(f"{gpus.index(a)}-{gpus.index(b)}" for a, b in moves)]
    command = [bench.machine.build.program("peer-copy"), *words]
    if tenant:
        job = bench.machine.tenant("copies", command, ["--gpu", ",".join(map(str, gpus)),
                                                       "--memory", MEMORY])
    else:
        visible = ",".join(topo.uuid[gpu] for gpu in gpus)
        job = bench.machine.native("copies", ["/usr/bin/env", f"CUDA_VISIBLE_DEVICES={visible}",
                                              *command])
    job.check(60 + 10 * len(moves))
    return [line["gib_s"] for _, line in job.json()]


def copy_row(bench, topo, name, pair):
    both = [copies(bench, topo, list(pair), [pair], tenant)[0] for tenant in (True, False)]
    return Row(f"{name}: GPUs {pair[0]} and {pair[1]}, {topo.link_name(pair)}", "GiB/s", both[0],
               native=both[1])


def ring_row(bench, topo, name, gpus):
    ring = topo.ring(gpus)
    words = "/".join(sorted({topo.link_name(step) for step in steps(ring)}))
    both = [min(copies(bench, topo, ring, steps(ring), tenant, ["--together"]))
            for tenant in (True, False)]
    return Row(f"{name}: GPUs {', '.join(map(str, ring))}, {words}", "GiB/s", both[0],
               native=both[1])


def all_reduce(bench, topo, gpus):
    """GiB a second that an all-reduce moves over the links of each GPU, as NCCL's tests count it."""
    job = bench.machine.tenant("all-reduce", [sys.executable, ALL_REDUCE],
                               ["--gpu", ",".join(map(str, gpus)), "--memory", "16GiB"])
    job.check(180)
    return job.json()[-1][1]["bus_gib_s"]


def add_all_reduces(bench, topo, count, chosen):
    name = f"all-reduce over {count}"
    if bench.machine.sim or not importlib.util.find_spec("torch"):
        bench.result.skip(name, "the simulated GPU computes nothing" if bench.machine.sim else
                          "PyTorch is not installed")
        return
    sets = {"chosen": chosen, "farthest": topo.farthest(count)} if topo.has_choice(count) else {"any": chosen}
    for words, gpus in sets.items():
        bench.result.add(Row(f"{name}, {words}: GPUs {', '.join(map(str, gpus))}", "GiB/s",
                             all_reduce(bench, topo, gpus)))


def skip_choice(bench, topo, count):
    bench.result.skip(f"the choice of {count} of {len(topo.uuid)} GPUs", "all choices have the same links, so it cannot be wrong")


def choose_pair(bench, topo, best):
    """Judges the pair that the daemon chooses by the speed of the best kind of link, and compares it with the farthest pair."""
    near = copy_row(bench, topo, "a copy, the two chosen", bench.machine.choose(2))
    bench.result.add(at_least(near, round(bench.bar(NEAR, 0.8) * best, 1)))
    far = copy_row(bench, topo, "a copy, the two farthest", topo.farthest(2))
    bench.result.add(far)
    bench.result.add(Row("a copy: chosen against farthest", "times", near.got / far.got, native=near.native / far.native))


def choose_ring(bench, topo, four):
    """The same with rings of the GPUs that the daemon chooses, `four`."""
    near = ring_row(bench, topo, f"a ring of {RING}, chosen", four)
    far = ring_row(bench, topo, f"a ring of {RING}, farthest", topo.farthest(RING))
    best = ring_row(bench, topo, f"a ring of {RING}, nearest", topo.nearest_ring(RING))
    bench.result.add(at_least(near, round(bench.bar(NEAR, 0.8) * best.got, 1)))
    bench.result.add(best)
    bench.result.add(far)
    bench.result.add(Row(f"a ring of {RING}: chosen against farthest", "times", near.got / far.got,
                         native=near.native / far.native))


def topology(bench):
    topo = Topology(bench.machine)
    if len(topo.uuid) < 2:
        bench.result.skip("copies between GPUs", "one GPU")
        return
    rows = [copy_row(bench, topo, "a copy", pair) for pair in topo.pair_of_each_link().values()]
    for row in rows:
        bench.result.add(row)
    if topo.has_choice(2):
        choose_pair(bench, topo, max(row.got for row in rows))
    else:
        skip_choice(bench, topo, 2)
    if len(topo.uuid) >= RING:
        four = bench.machine.choose(RING)
        if topo.has_choice(RING):
            choose_ring(bench, topo, four)
        else:
            skip_choice(bench, topo, RING)
            bench.result.add(ring_row(bench, topo, f"a ring of {RING}", four))
        add_all_reduces(bench, topo, RING, four)
    else:
        bench.result.skip(f"a ring of {RING}", f"{len(topo.uuid)} GPUs")
        add_all_reduces(bench, topo, 2, bench.machine.choose(2))
    bench.result.charts.append(lambda stem: plot.bars(
        stem + ".svg", "Copies from GPU to GPU, by their places", bench.result.rows, "GiB/s"))
