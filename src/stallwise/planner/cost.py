"""The answer to "what does this run really cost": goodput, checkpoints, dollars and energy, with an interval."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from stallwise.errors import BadRequest
from stallwise.physics.costs.economics import (
    BEST_MTBF_GPU_S,
    HOUR_S,
    WORST_MTBF_GPU_S,
    Checkpoint,
    Goodput,
    Reliability,
    best_interval_s,
    cost_per_useful_hour,
    daly_interval_s,
    energy_joule,
    goodput,
    reshard_s,
    storage_for_overhead,
    stranded_share,
    young_interval_s,
)
from stallwise.physics.specs.cluster import Cluster

# A checkpoint of Adam in mixed precision: bf16 weights, fp32 copy and two moments; gradients are not written.
CHECKPOINT_BYTES_PER_PARAM = 14.0
USUAL_PRICE = (2.0, 4.0)  # dollars per H100-hour in public lists of 2024-2026, where the catalogue has no price
SMALL_OVERHEAD = 0.01


@dataclass(frozen=True, slots=True)
class CostQuestion:
    """A run as its owner describes it."""

    cluster: Cluster
    checkpoint_bytes: float
    storage_byte_per_s: float = 20e9
    asynchronous: bool = False
    interval_s: float | None = None  # None: the best
    mtbf_gpu_s: float | None = None  # None: published fleets
    restart_s: float = 600.0
    detect_s: float = 300.0
    useful_s: float = 0.0  # training time wanted, without failures; 0: cost per hour only
    price_dollar: float | None = None
    busy_share: float = 0.9
    free_blocks: tuple[int, ...] = ()
    block: int = 8


def answer_cost(question: CostQuestion) -> dict[str, Any]:
    """Everything `stallwise plan cost` says, as plain data."""
    if question.checkpoint_bytes <= 0 or question.storage_byte_per_s <= 0:
        raise BadRequest(
            "a checkpoint needs a size and a storage bandwidth above zero", hint="--params 70B --storage 20GB/s"
        )
    cluster = question.cluster
    reliability = Reliability(cluster.gpus, restart_s=question.restart_s, detect_s=question.detect_s)
    bounds = (WORST_MTBF_GPU_S, BEST_MTBF_GPU_S)
    if question.mtbf_gpu_s is not None:
        reliability = replace(reliability, mtbf_gpu_s=question.mtbf_gpu_s)
        bounds = (question.mtbf_gpu_s / 2, question.mtbf_gpu_s * 2)  # one fleet's own figure drifts by about this
    writes = {
        kind: Checkpoint(
            question.checkpoint_bytes, question.storage_byte_per_s, asynchronous=kind == "async", gpus=cluster.gpus
        )
        for kind in ("sync", "async")
    }
    chosen = "async" if question.asynchronous else "sync"
    results = {kind: goodput(reliability, write, _interval(question, write)) for kind, write in writes.items()}
    best = results[chosen]
    if best.goodput_share <= 0:
        raise BadRequest(
            f"nothing gets done: a failure every {reliability.mtbf_s:.3g} s leaves no time between detecting it, restarting "
            f"({question.detect_s + question.restart_s:.3g} s) and the checkpoints",
            hint="check --mtbf (of one GPU: 50000h), --restart and --detect",
        )
    low, high = (
        goodput(replace(reliability, mtbf_gpu_s=mtbf), writes[chosen], best.interval_s).goodput_share for mtbf in bounds
    )
    stall = writes[chosen].stall_s
    return {
        "gpus": cluster.gpus,
        "gpu": cluster.gpu.title,
        "mtbf_s": reliability.mtbf_s,
        "failures_per_day": best.failures_per_day,
        "checkpoint": {
            "size_bytes": question.checkpoint_bytes,
            "write_s": writes[chosen].write_s,
            "stall_s": stall,
            "asynchronous": question.asynchronous,
            "young_s": young_interval_s(stall, reliability.mtbf_s),
            "daly_s": daly_interval_s(stall, reliability.mtbf_s),
            "best_s": best_interval_s(reliability, stall),
            "storage_for_one_percent_byte_per_s": storage_for_overhead(
                question.checkpoint_bytes, best.interval_s, SMALL_OVERHEAD
            ),
        },
        "goodput": {**asdict(best), "low_share": low, "high_share": high},
        "alternatives": {kind: asdict(result) for kind, result in results.items()},
        "money": _money(question, best, low, high),
        "energy": _energy(question, best),
        "reshard_s": reshard_s(
            question.checkpoint_bytes, question.storage_byte_per_s, cluster.gpus, nic_byte_per_s=cluster.nic_byte_per_s
        ),
        "stranded_share": stranded_share(question.free_blocks, question.block) if question.free_blocks else None,
        "basis": "failures of published fleets (Llama 3: one per 50,700 GPU-hours; 29,500 to 82,000 elsewhere)"
        if question.mtbf_gpu_s is None
        else "the stated time between failures, halved and doubled for the interval",
    }


def _interval(question: CostQuestion, write: Checkpoint) -> float | None:
    if question.interval_s is None:
        return None
    return max(question.interval_s, write.write_s) if write.asynchronous else question.interval_s


def _money(question: CostQuestion, best: Goodput, low: float, high: float) -> dict[str, Any]:
    cluster = question.cluster
    price = question.price_dollar or cluster.price_per_gpu_hour
    prices = (price, price) if price else USUAL_PRICE
    middle = sum(prices) / 2
    hourly = cost_per_useful_hour(cluster.gpus, middle, best.goodput_share)
    bounds = [
        cost_per_useful_hour(cluster.gpus, prices[0], high),
        cost_per_useful_hour(cluster.gpus, prices[1], low),
    ]
    money: dict[str, Any] = {
        "dollar_per_gpu_hour": middle,
        "price_known": bool(price),
        "paid_dollar_per_hour": cluster.gpus * middle,
        "dollar_per_useful_hour": hourly,
        "dollar_per_useful_hour_range": bounds,
        "dollar_per_failure": cluster.gpus
        * middle
        * (question.restart_s + question.detect_s + best.interval_s / 2)
        / HOUR_S,
    }
    if question.useful_s:
        hours = question.useful_s / HOUR_S
        money |= {
            "run_wall_s": question.useful_s / best.goodput_share,
            "run_dollar": hours * hourly,
            "run_dollar_range": [hours * b for b in bounds],
        }
    return money


def _energy(question: CostQuestion, best: Goodput) -> dict[str, float]:
    cluster = question.cluster
    busy = question.busy_share * best.goodput_share
    hourly = energy_joule(cluster.gpus, HOUR_S, cluster.gpu.power_w, busy_share=busy)
    return {
        "joule_per_hour": hourly,
        "kwh_per_useful_hour": hourly / 3.6e6 / best.goodput_share,
    }
