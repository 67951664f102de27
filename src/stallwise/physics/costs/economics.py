"""What a training run costs when machines fail: goodput, checkpoints, dollars, energy.

A run of n GPUs fails n times as often as one. Each failure costs the work since the last checkpoint, the restart and
the detection; each checkpoint costs the time the step waits for it. The interval between checkpoints trades the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, expm1, log, sqrt

from stallwise.errors import BadRequest

HOUR_S = 3600.0
# Meta, Llama 3 (arXiv 2407.21783, table 5): 419 unexpected interruptions in 54 days on 16,384 H100: one per 50,700
# GPU-hours.
LLAMA3_MTBF_GPU_S = 54 * 24 * HOUR_S * 16384 / 419
# Between fleets this varies: Kokolis et al. (arXiv 2410.21680) report 6.5 failures per 1,000 node-days of 8 GPUs on one
# cluster and 2.34 on another: one per 29,500 and per 82,000 GPU-hours.
WORST_MTBF_GPU_S = 29_500 * HOUR_S
BEST_MTBF_GPU_S = 82_000 * HOUR_S

STORAGE_DUTY_SHARE = 0.25  # of the time that writes may occupy the storage, which also feeds the data loader


@dataclass(frozen=True, slots=True)
class Reliability:
    """How often something breaks and what it takes to get going again."""

    gpus: int
    mtbf_gpu_s: float = LLAMA3_MTBF_GPU_S  # mean time between failures of one GPU with its share of the machine
    restart_s: float = 600.0  # scheduling, NCCL start, loading the checkpoint, warming up
    detect_s: float = 300.0  # until somebody notices; a NCCL watchdog of 10 minutes averages more

    def __post_init__(self) -> None:
        if self.gpus < 1 or self.mtbf_gpu_s <= 0 or self.restart_s < 0 or self.detect_s < 0:
            raise BadRequest("GPUs and times must be above zero", hint="512 GPUs, 50000h between failures of one")

    @property
    def mtbf_s(self) -> float:
        """Of the whole job: any GPU stops all."""
        return self.mtbf_gpu_s / self.gpus

    @property
    def down_s(self) -> float:
        """Lost per failure besides the work since the last checkpoint."""
        return self.restart_s + self.detect_s


def young_interval_s(checkpoint_s: float, mtbf_s: float) -> float:
    """Young 1974: sqrt(2 C M), for checkpoints much shorter than the time between failures."""
    _check(checkpoint_s, mtbf_s)
    return sqrt(2 * checkpoint_s * mtbf_s)


def daly_interval_s(checkpoint_s: float, mtbf_s: float) -> float:
    """Daly 2006, higher order: compute time between checkpoints; beyond C = 2 M one never gets ahead: M."""
    _check(checkpoint_s, mtbf_s)
    if checkpoint_s >= 2 * mtbf_s:
        return mtbf_s
    x = sqrt(checkpoint_s / (2 * mtbf_s))
    return sqrt(2 * checkpoint_s * mtbf_s) * (1 + x / 3 + x * x / 9) - checkpoint_s


def _check(checkpoint_s: float, mtbf_s: float) -> None:
    if not checkpoint_s > 0 or not mtbf_s > 0:
        raise BadRequest("checkpoint time and time between failures must be above zero", hint="60s and 4h")


def wall_ratio(interval_s: float, checkpoint_s: float, reliability: Reliability) -> float:
    """Wall time per useful time, failures exponential and possible at any moment, restarts included (Daly's model)."""
    m = reliability.mtbf_s
    exponent = (interval_s + checkpoint_s) / m
    if exponent > 700:
        return float("inf")
    # Expected time to get through one interval: each failure loses what was done in it and the time to come back.
    return (m + reliability.down_s) * expm1(exponent) / interval_s


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Writing the state of a run."""

    size_bytes: float
    storage_byte_per_s: float  # all writers together
    asynchronous: bool = False
    copy_byte_per_s: float = 25e9  # per GPU to host memory over PCIe: what the step waits for when asynchronous
    gpus: int = 1

    @property
    def write_s(self) -> float:
        """Until it is safe."""
        return self.size_bytes / self.storage_byte_per_s

    @property
    def stall_s(self) -> float:
        """What the step waits: the whole write, or only the copy to host memory."""
        if not self.asynchronous:
            return self.write_s
        return self.size_bytes / (self.copy_byte_per_s * max(1, self.gpus))


@dataclass(frozen=True, slots=True)
class Goodput:
    """How much of the paid time becomes training."""

    interval_s: float
    checkpoint_share: float
    lost_work_share: float
    down_share: float
    goodput_share: float
    failures_per_day: float
    storage_byte_per_s: float  # average rate the checkpoints take


def goodput(reliability: Reliability, checkpoint: Checkpoint, interval_s: float | None = None) -> Goodput:
    """At a given interval, or at the best one. An asynchronous write is only safe once it is written."""
    stall = max(checkpoint.stall_s, 1e-9)
    unsafe_s = checkpoint.write_s - checkpoint.stall_s  # a failure here falls back to the checkpoint before
    if interval_s is None:
        interval_s = max(daly_interval_s(stall, reliability.mtbf_s), checkpoint.write_s / STORAGE_DUTY_SHARE)
    if interval_s <= 0:
        raise BadRequest("the checkpoint interval must be above zero", hint="30min")
    if checkpoint.asynchronous and interval_s < checkpoint.write_s:
        raise BadRequest(
            "the next checkpoint would start before the last is written",
            hint=f"at least {checkpoint.write_s:.0f} s apart, or more storage bandwidth",
        )
    ratio = wall_ratio(interval_s, stall, reliability) * (1 + max(0.0, unsafe_s) / reliability.mtbf_s)
    share = 1 / ratio
    failures = 1 / (reliability.mtbf_s + reliability.down_s)  # per second of wall time: none while it is down
    down = failures * reliability.down_s
    writing = share * stall / interval_s
    return Goodput(
        interval_s=interval_s,
        checkpoint_share=writing,
        lost_work_share=max(0.0, 1 - share - writing - down),
        down_share=down,
        goodput_share=share,
        failures_per_day=failures * 24 * HOUR_S,
        storage_byte_per_s=share * checkpoint.size_bytes / interval_s,
    )


def best_interval_s(reliability: Reliability, checkpoint_s: float) -> float:
    """The minimum of `wall_ratio`, found numerically; Daly's closed form is within a fraction of a percent of it."""
    low, high = log(checkpoint_s / 100), log(max(checkpoint_s, reliability.mtbf_s) * 100)
    for _ in range(200):  # golden section: the ratio has one minimum
        a = high - (high - low) * 0.618033988749895
        b = low + (high - low) * 0.618033988749895
        if wall_ratio(exp(a), checkpoint_s, reliability) < wall_ratio(exp(b), checkpoint_s, reliability):
            high = b
        else:
            low = a
    return exp((low + high) / 2)


def storage_for_overhead(size_bytes: float, interval_s: float, overhead_share: float) -> float:
    """Write bandwidth at which synchronous checkpoints at this interval cost this share of the time."""
    if not 0 < overhead_share < 1:
        raise BadRequest("the overhead must lie between 0 and 100%", hint="1%")
    return size_bytes / (interval_s * overhead_share / (1 - overhead_share))


def cost_per_useful_hour(gpus: int, dollar_per_gpu_hour: float, goodput_share: float) -> float:
    """Dollars per hour in which the whole job really trains."""
    if goodput_share <= 0:
        return float("inf")
    return gpus * dollar_per_gpu_hour / goodput_share


def stranded_share(free_gpus_per_block: tuple[int, ...], block_needed: int) -> float:
    """Share of the free GPUs that a job in need of whole blocks (an NVLink domain, a rail group, a pod) cannot use."""
    free = sum(free_gpus_per_block)
    if block_needed < 1:
        raise BadRequest("a block needs at least one GPU", hint="8 for a whole node")
    usable = sum(n // block_needed * block_needed for n in free_gpus_per_block)
    return 1 - usable / free if free else 0.0


def energy_joule(
    gpus: int, seconds: float, gpu_power_w: float, *, busy_share: float = 1.0, idle_power_w: float = 100.0,
    host_ratio: float = 1.35, pue_ratio: float = 1.2,
) -> float:  # fmt: skip
    """Of a run at the meter. A DGX H100 draws up to 10.2 kW, of which its GPUs 5.6: hosts, fans and switches add a
    third to a half in practice; power usage effectiveness of the building comes on top."""
    mean_w = busy_share * gpu_power_w + (1 - busy_share) * idle_power_w
    return gpus * mean_w * seconds * host_ratio * pue_ratio


def reshard_s(size_bytes: float, read_byte_per_s: float, gpus: int, *, nic_byte_per_s: float = 50e9) -> float:
    """Restart on another layout: every rank reads its own new shard (read once from storage, bounded by either end)."""
    return max(size_bytes / read_byte_per_s, size_bytes / gpus / nic_byte_per_s)
