"""Two small models on one card: the smallest MIG slice that holds the target, or MPS on the whole card."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from stallwise.search.serving import Curve, Option, Question, fit
from stallwise.specs.hardware import Gpu

# NVIDIA's MIG profiles of A100 and later: sevenths of the multiprocessors, eighths of memory and of its bandwidth.
SLICES = (("1g", 1 / 7, 1 / 8), ("2g", 2 / 7, 2 / 8), ("3g", 3 / 7, 4 / 8), ("4g", 4 / 7, 4 / 8))
MIG_FAMILIES = ("a100", "h100", "h200", "h800", "b200", "b300", "gb200", "gh200", "a30")
LITTLE_WORK = 0.45  # of the card that one model keeps busy, so that two have room beside each other


@dataclass(frozen=True)
class Sharing:
    """How many such services one card carries."""

    way: str  # "MIG 3g" or "MPS"
    models: int
    tpot_s: float
    ttft_s: float
    memory_bytes: float
    note: str


def share_card(option: Option, question: Question) -> list[Sharing]:
    """Ways to put two or more of this model on one of these cards; empty where one fills it."""
    d = option.deployment
    if d.ranks != 1 or option.replicas != 1:
        return []
    found = []
    if any(d.gpu.name.startswith(f) for f in MIG_FAMILIES):
        for name, compute, memory in SLICES:
            part = _slice(d.gpu, compute, memory)
            sized = fit(d.changed(gpu=part), question)
            if isinstance(sized, Option) and sized.replicas == 1:
                count = min(math.floor(1 / compute), math.floor(1 / memory))
                found.append(Sharing(f"MIG {name}", count, sized.now.tpot_s, sized.now.ttft_s, part.memory_bytes,
                                     "memory, bandwidth and faults apart"))  # fmt: skip
                break
    half = d.changed(memory_share=d.memory_share / 2)
    sized = fit(half, question)
    if isinstance(sized, Option) and sized.replicas == 1 and _busy(sized, question) <= LITTLE_WORK:
        together = Curve(half, replace(question, rate_per_s=2 * question.rate_per_s)).at_rate(2 * question.rate_per_s)
        if together.tpot_s <= question.tpot_s and together.ttft_s <= question.ttft_s:
            found.append(Sharing("MPS", 2, together.tpot_s, together.ttft_s, d.gpu.memory_bytes * half.memory_share,
                                 "shares everything: a burst of one is felt by the other"))  # fmt: skip
    return found


def _busy(option: Option, question: Question) -> float:
    """Share of the card's time that this rate needs."""
    return option.now.rate_per_s / option.limit.rate_per_s


def _slice(gpu: Gpu, compute: float, memory: float) -> Gpu:
    return replace(
        gpu,
        memory_bytes=gpu.memory_bytes * memory,
        bandwidth_byte_per_s=gpu.bandwidth_byte_per_s * memory,
        sm_count=int(gpu.sm_count * compute),
        peak_flop_per_s={k: v * compute for k, v in gpu.peak_flop_per_s.items()},
    )
