"""Many ranks on one clock: collectives, arrivals, stragglers, pipelines and experts."""

from __future__ import annotations

from stallwise.evidence.capture import NCCL_TESTS, RANK_TRACES, STEP_SHAPE, TORCH_TRACE
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit

_S, _N, _X, _P, _T, _B = Unit.SECOND, Unit.COUNT, Unit.RATIO, Unit.SHARE, Unit.TEXT, Unit.BYTE


def _of_ranks(name: str, unit: Unit, meaning: str, *aliases: str) -> Quantity:
    return Quantity(name, unit, meaning, RANK_TRACES, aliases)


def _of_trace(name: str, unit: Unit, meaning: str, *aliases: str) -> Quantity:
    return Quantity(name, unit, meaning, TORCH_TRACE, aliases)


# The job
WORLD_SIZE = _of_trace("job.world_size", _N, "ranks in the job, as its trace or its launcher says")
RANKS_SEEN = _of_ranks("job.ranks_seen", _N, "ranks whose traces were read")
JOB_STEP = _of_ranks("job.step_time", _S, "wall time of a step on the common clock")

# One clock
CLOCK_OFFSET = _of_ranks("clock.offset", _S, "what was added to a rank's clock to meet the others")
CLOCK_DRIFT = _of_ranks("clock.drift", _X, "seconds a second by which a rank's clock runs fast")
CLOCK_ERROR = _of_ranks("clock.error", _S, "how far two ranks' clocks may still be apart after alignment")

# Collectives of one rank, per step
COLLECTIVES = _of_trace("comm.count", _N, "collectives a step")
COMM_TIME = _of_trace("comm.time", _S, "time in collectives a step, hidden or not")
COMM_EXPOSED = _of_trace("comm.exposed", _S, "time a step in which only collectives run")
COMM_BYTES = _of_trace("comm.bytes", _B, "bytes that collectives of a step work on")
COMM_SHARE = _of_trace("comm.exposed_share", _P, "share of the step in which only collectives run", "comm_share")
MESSAGE_MEDIAN = _of_trace("comm.message_median", _B, "median size of a collective, weighted by time")
SMALL_TIME = _of_trace("comm.small_time", _S, "exposed time a step in reductions too small to use the links")
SMALL_COUNT = _of_trace("comm.small_count", _N, "such small reductions a step")
SMALL_SIZE = _of_trace("comm.small_size", _B, "their median size")
SMALL_MERGED_TIME = _of_trace("comm.small_merged_time", _S, "the time they would take as few large ones")
ALL_TO_ALL_TIME = _of_trace("comm.all_to_all_exposed", _S, "exposed time a step in all-to-all")
ALL_TO_ALL_SHARE = _of_trace("comm.all_to_all_share", _P, "share of the step in all-to-all", "all_to_all_share")
COMPUTE_BUSY = _of_trace("comm.compute_time", _S, "time a step in which kernels other than communication run")
GROUP_EXPOSED = _of_trace("comm.group_exposed", _S, "exposed time a step in the collectives of one process group")
BUS_BANDWIDTH = _of_ranks("comm.bus_bandwidth", Unit.BYTE_PER_S, "bus bandwidth of large collectives, waiting removed")
BUS_EXPECTED = _of_ranks(
    "comm.bus_expected",
    Unit.BYTE_PER_S,
    "bus bandwidth that the links should give",
)
BANDWIDTH_SPREAD = _of_ranks(
    "comm.bandwidth_spread", _X, "quickest tenth over slowest tenth of equal collectives, waiting removed"
)

# Across ranks, per step
WAIT_FOR_PEERS = _of_ranks("comm.wait_for_peers", _S, "exposed time a step spent waiting for the last rank to arrive")
MOVING_BYTES = _of_ranks("comm.moving_bytes", _S, "exposed time a step spent moving bytes")
ARRIVAL_SKEW = _of_ranks("comm.arrival_skew", _S, "median time from the middle rank's arrival to the last one's")
UNSEEN_WAIT = _of_ranks("comm.unseen_wait", _S, "waiting a step for a rank whose trace is not here")

# Stragglers
STRAGGLER = _of_ranks("straggler.rank", _T, "the ranks that arrive late", "late_rank")
STRAGGLER_COST = _of_ranks("straggler.cost", _S, "what they cost the job a step, by replay without their delay")
EVEN_GAIN = _of_ranks("straggler.even_gain", _S, "what a step would save if all ranks came with the middle one")
STRAGGLER_EXPLAINS = _of_ranks("straggler.share_of_waiting", _P, "share of all waiting for peers that they cause")
STRAGGLER_OFTEN = _of_ranks("straggler.often", _P, "share of steps in which they are late")
STRAGGLER_SINCE = _of_ranks("straggler.since", _N, "the first step from which they are late most of the time")
STRAGGLER_CAUSE = _of_ranks("straggler.cause", _T, "what they do while the others wait: input, host, kernels, work...")
STRAGGLER_CAUSE_SHARE = _of_ranks("straggler.cause_share", _P, "share of the delay that this explains")
STRAGGLER_DETAIL = _of_ranks("straggler.detail", _T, "the cause in a sentence")
KERNEL_SLOWDOWN = _of_ranks("straggler.kernel_slowdown", _X, "time of their kernels over the same kernels of peers")
CRITICAL_RANK_SHARE = _of_ranks("straggler.critical_share", _P, "share of the critical path that runs on them")

# Pipelines
PIPELINE_STAGES = _of_ranks("pipeline.stages", _N, "pipeline stages seen")
STAGE_COMPUTE = _of_ranks("pipeline.stage_time", _S, "compute of one stage a step")
STAGE_RATIO = _of_ranks("pipeline.stage_ratio", _X, "slowest stage over the mean")
SLOWEST_STAGE = _of_ranks("pipeline.slowest_stage", _N, "index of the slowest stage, from 0")
PIPELINE_IDLE = _of_ranks(
    "pipeline.idle_share", _P, "share of the step in which a mean stage neither computes nor moves bytes"
)
BUBBLE_IDEAL = _of_ranks("pipeline.bubble_ideal", _P, "idle share that the schedule itself costs")
P2P_TIME = _of_ranks("pipeline.p2p_time", _S, "time a step in which sends and receives move bytes, exposed")
P2P_COUNT = _of_ranks("pipeline.p2p_count", _N, "sends and receives a step and stage")
MICROBATCHES_SEEN = _of_ranks("pipeline.microbatches", _N, "micro-batches a step, counted from the hand-offs")
BEST_VIRTUAL_STAGES = Quantity(
    "pipeline.best_virtual_stages", _N, "chunks a rank that a simulation finds best", STEP_SHAPE
)

# Experts
EXPERT_SPREAD = _of_ranks("moe.token_spread", _X, "tokens of the busiest rank or expert over the mean", "expert_spread")
EXPERT_BUSIEST = _of_ranks("moe.busiest", _T, "the rank or expert with most tokens")
DISPATCH_TIME = _of_ranks("moe.dispatch_time", _S, "one dispatch or combine all-to-all")
DISPATCH_BALANCED = _of_ranks("moe.dispatch_balanced", _S, "the same all-to-all with evenly spread tokens")

# The network over time
LINK_RATE_BEFORE = Quantity(
    "network.rate_before", Unit.BYTE_PER_S, "rate of a link when it was alone or well", NCCL_TESTS
)
LINK_RATE_NOW = Quantity("network.rate_now", Unit.BYTE_PER_S, "rate of the same link in the bad period", NCCL_TESTS)
NEIGHBOUR_RATE = Quantity(
    "network.neighbour_rate", Unit.BYTE_PER_S, "rate that another job drew from the same link then", NCCL_TESTS
)
