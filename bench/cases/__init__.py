"""The list of benches, in the order in which they run. Each is a function that takes a Bench and adds rows to its result."""

from dataclasses import dataclass
from typing import Callable

from . import (arrivals, bursty, calls, daemon_cpu, ddp, epochs, freezer, hostile, launch, llm, matrix, order, over_time,
               oversubscribe, overhead, packing, policies, response, scale, scheduler_scale, sensors, shares, space,
               space_bursty, space_launch, space_lend, space_priority, space_shares, swap_trainings, that_fit, together,
               topology, tracing, training)

# Reasons why some benches can't run with --sharing space.
BOTH = "it measures --sharing space by itself"
NO_GPU = "no GPU takes part"
NO_TENANT = "its containers do not have the library, so they can't share by MPS"
ONE_GPU = "an MPS server belongs to one GPU, so a tenant of several GPUs has none"
NOT_SWAPPABLE = "memory of MPS clients can't be moved off the GPU"
TURNS = "it compares policies of taking turns"


@dataclass(frozen=True)
class Case:
    name: str
    run: Callable
    about: str
    seconds: Callable       # function of the Bench settings: about how long the bench takes
    is_long: bool = False   # left out of --quick
    trains: bool = False    # needs PyTorch and a GPU that computes
    cuts: bool = False      # has cells, of which --part and --within choose some
    repeats: bool = False   # has runs of its own (--runs)
    not_space: str = None   # why it can't run with --sharing space
    gpus: int = 1           # how many GPUs it wants; with one, its programs see only that of --gpu


CASES = [
    Case("cap", shares.cap, "one tenant alone, capped at 20, 50, 80 %",
         lambda s: 10 + (2 if s.quick else 6) * (s.seconds + 3.5 + s.other_seconds / 2 + s.rival_seconds)),
    Case("three", shares.three, "45 / 30 / 15 % together, hard caps",
         lambda s: 2 * (s.seconds + 3.8 + 2 * s.other_seconds + s.rival_seconds)),
    Case("matrix", matrix.matrix, "one tenant alone, from 1 to 95 %, kernels of 20 us to 5 ms",
         matrix.seconds_of, cuts=True),
    Case("fifty_beside_four", shares.fifty_beside_four, "50 % beside four at 10 %",
         lambda s: s.seconds + s.native_seconds + 8 + s.other_seconds + s.rival_seconds),
    Case("five_equal", shares.five_equal, "five equal tenants: sum of work against one alone",
         lambda s: 2 * (s.seconds + s.native_seconds + 14)),
    Case("closed_loops", shares.closed_loops, "loops of 1, 8 and 64 kernels and a wait: 45 / 30 / 15 %, and five equal",
         shares.closed_loops_seconds),
    Case("target", together.target, "a target of 50 % beside 1, 2, 3, 4 others: the work that it loses",
         lambda s: 5 + s.cell_seconds + (1 if s.quick else 4) *
         (s.cell_seconds + s.native_seconds + 8)),
    Case("pair", together.pair, "5 ms kernels beside 50 us ones, equal cores",
         lambda s: 2 * (s.native_seconds + 4.5) + s.seconds + s.native_seconds + 9),
    Case("odd_work", together.odd_work, "graphs, cooperative kernels, 20 ms kernels at 30 %",
         lambda s: 3 * (s.cell_seconds + s.native_seconds + 8.5)),
    Case("many_streams", together.many_streams, "4 processes x 4 streams beside one",
         lambda s: s.native_seconds + 4.5 + s.cell_seconds + s.native_seconds + 9),
    Case("thousands_of_streams", together.thousands_of_streams, "4,000 streams of a capped tenant beside one",
         lambda s: 2 * 4.5 + s.cell_seconds + 12),
    Case("priority", response.priority, "5 ms of inference each 50 ms beside one and three trainers",
         lambda s: 2 * (s.native_seconds + 4.5) + 5 * (s.seconds + 4) + 2 * (s.native_seconds + 4)),
    Case("step", response.step, "step responses: allot set, and a new tenant",
         lambda s: s.native_seconds + 4.5 + 2 * (response.step_seconds(s) + 4)),
    Case("bursty", bursty.bursty, "busy and idle phases: static against lent and elastic",
         bursty.seconds_of, is_long=True),
    Case("policies", policies.policies, "the same cases under each policy", policies.seconds_of, is_long=True,
         not_space=TURNS),
    Case("scale", scale.scale, "1 to 64 tenants: sum, fairness, wait for a turn, the daemon's CPU",
         scale.seconds_of, is_long=True),
    Case("daemon_cpu", daemon_cpu.daemon_cpu, "the daemon's CPU by thread: 50 and 3 tenants, and idle",
         daemon_cpu.seconds_of, is_long=True, cuts=True),
    Case("hostile", hostile.hostile, "users who flood the daemon: starts of honest users, and shares of tenants at work",
         hostile.seconds_of, is_long=True, not_space="its tenants at work have hard caps, which need turns"),
    Case("over_time", over_time.over_time, "tenants that work past the library: how soon they are found; honest tenants",
         over_time.seconds_of, not_space="MPS's server does its clients' work, so the driver does not tell them apart"),
    Case("topology", topology.topology, "copies and rings between GPUs by kind of link, and between the chosen ones",
         topology.seconds_of, not_space=ONE_GPU, gpus=topology.RING),
    Case("freezer", freezer.freezer, "containers without the library: freeze, thaw, watching, starts",
         freezer.seconds_of, is_long=True, not_space=NO_TENANT),
    Case("sensors", sensors.sensors, "allot's busy time and NVML's figures against work done",
         lambda s: 10 + (2 if s.quick else 5) * 10, is_long=True),
    Case("order", order.order, "six tasks of equal need, room for three: native and --on-full wait",
         order.seconds_of),
    Case("that_fit", that_fit.that_fit, "two to five equal tasks whose memory fits together", that_fit.seconds_of),
    Case("oversubscribe", oversubscribe.oversubscribe,
         "two tasks of 60 % of the memory each: native and --on-full swap; moves; two that fit",
         oversubscribe.seconds_of, not_space=NOT_SWAPPABLE),
    Case("swap_trainings", swap_trainings.swap_trainings,
         "two PyTorch trainings of 60 % of the memory each, --on-full swap", swap_trainings.seconds_of,
         is_long=True, trains=True, not_space=NOT_SWAPPABLE),
    Case("launch_cost", launch.launch_cost, "cost of a launch, alone and uncapped",
         lambda s: s.launch_rounds * 2.6),
    Case("trace_overhead", tracing.trace_overhead, "cost of allot trace to the recorded tenant, measured alternately",
         tracing.seconds_of),
    Case("calls", calls.calls, "cost of look-ups, allocations and contexts, measured alternately",
         lambda s: 20 if s.quick else 60),
    Case("start", calls.start, "start of a process that uses no GPU, measured alternately",
         lambda s: 3 if s.quick else 8, not_space=NO_GPU),
    Case("cluster_packing", packing.cluster_packing, "how full a cluster gets, by policy, on virtual time",
         packing.seconds_of, is_long=True, cuts=True, not_space=NO_GPU),
    Case("scheduler_scale", scheduler_scale.scheduler_scale, "cost of the scheduler's decisions, 100 to 5,000 nodes",
         lambda s: 30, is_long=True, not_space=NO_GPU),
    Case("resnet_overhead", training.resnet_overhead,
         "ResNet18 with a quota that does not bind",
         lambda s: 2 * s.training_rounds * (s.training_seconds + 6), trains=True),
    Case("resnet_half", training.resnet_half, "ResNet18 at half of the GPU",
         lambda s: s.training_seconds + 6, trains=True),
    Case("trainings_half", training.trainings_half, "three models at half of the GPU, waiting for each step, each 10, never",
         training.trainings_half_seconds, is_long=True, trains=True),
    Case("oom", training.oom, "PyTorch over its memory quota", lambda s: 30, trains=True),
    Case("mixed", shares.mixed, "kernels of 20 us to 50 ms, equal shares",
         lambda s: 5 * 6 + s.seconds + 5, is_long=True),
    Case("seed_models", training.seed_models, "ResNet18, a transformer and a GRU at 45 / 30 / 15 %",
         training.seed_models_seconds, is_long=True, trains=True),
    Case("arrivals", arrivals.arrivals, "a Transformer at 50 % as four models at 10 % arrive: its epoch time",
         arrivals.seconds_of, is_long=True, trains=True),
    Case("models_overhead", overhead.models_overhead,
         "five models, two batches each, with a quota that does not bind", overhead.seconds_of,
         is_long=True, trains=True, cuts=True),
    Case("epoch_quota", epochs.epoch_quota, "epoch time against a quota of 10 to 100 %",
         epochs.quota_seconds, is_long=True, trains=True),
    Case("epoch_memory", epochs.epoch_memory, "epoch time against a memory quota",
         epochs.memory_seconds, is_long=True, trains=True),
    Case("space", space.space, "three trainings at once: native, MPS alone, --sharing space",
         space.seconds_of, is_long=True, trains=True, not_space=BOTH),
    Case("space_three", space_shares.space_three, "45 / 30 / 15 % by space: plain MPS, caps, lending",
         space_shares.three_seconds, not_space=BOTH),
    Case("space_models", space_shares.space_models, "the same with ResNet18, a transformer and a GRU",
         space_shares.models_seconds, is_long=True, trains=True, not_space=BOTH),
    Case("space_fifty", space_shares.space_fifty, "50 % beside four at 10 % by space, against alone",
         space_shares.fifty_seconds, not_space=BOTH),
    Case("space_lend", space_lend.space_lend, "30 % alone, with all idle time lent, by space",
         space_lend.lend_seconds, not_space=BOTH),
    Case("space_wake", space_lend.space_wake, "a neighbour of 70 % wakes beside it, again and again",
         space_lend.wake_seconds, not_space=BOTH),
    Case("space_bursty", space_bursty.space_bursty, "busy and idle phases: lending by space against MPS's fixed parts",
         space_bursty.seconds_of, not_space=BOTH),
    Case("space_priority", space_priority.space_priority, "inference with priority beside a trainer, by space",
         space_priority.seconds_of, not_space=BOTH),
    Case("space_launch", space_launch.space_launch, "cost of a launch against that of a client of plain MPS",
         space_launch.seconds_of, not_space=BOTH),
    Case("llm", llm.llm, "LLM servers and trainings at once: native, plain MPS, by time, by space",
         llm.seconds_of, is_long=True, trains=True, cuts=True, not_space=BOTH, repeats=True),
    Case("ddp_half", ddp.ddp_half, "a job over two GPUs at 50 %, beside a training on each",
         ddp.seconds_of, is_long=True, trains=True, not_space=ONE_GPU, gpus=ddp.GPUS),
]
