"""What would make a failed allocation fit: each way with the bytes it frees here, in order of what it costs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.evidence.catalog import fabric, run, stated
from stallwise.evidence.catalog import memory as m
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Source, Table
from stallwise.physics.costs.memory_relief import Holdings, ways_to_fit

ORDER = 30
ADAM_PARTS = 4.0
ROUNDING_SHARE = 0.08  # of the device: less unused reserve is rounding that no setting returns


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """The plan as a table; empty where nothing failed."""
    request = evidence.get(m.REQUEST)
    if request is None:
        return
    shortfall = evidence.value(m.SHORTFALL, request.number)
    ways = [w for w in ways_to_fit(_holdings(evidence), shortfall) if w.saves_bytes > 0]
    if not ways:
        return
    yield Table(
        "memory.plan",
        {
            "action": np.array([w.action for w in ways], dtype=object),
            "saves_bytes": np.array([w.saves_bytes for w in ways]),
            "fits": np.array([w.saves_bytes >= shortfall for w in ways]),
            "cost": np.array([w.cost for w in ways], dtype=object),
            "risk": np.array([w.risk for w in ways], dtype=object),
        },
        Source(request.source.file, "memory plan"),
        meta={"shortfall_bytes": shortfall},
    )


def _shards(evidence: Evidence) -> float:
    """Over how many ranks the states are split: all of a sharded job, else those of one replica."""
    sharded = any(word in evidence.text(stated.SHARDING).lower() for word in ("fsdp", "zero3", "zero-3", "full"))
    replica = max(evidence.value(fabric.TP_SIZE, 1.0), 1.0) * max(evidence.value(stated.PP, 1.0), 1.0)
    whole = max(evidence.value(stated.GPUS, 1.0), replica * max(evidence.value(stated.DP, 1.0), 1.0))
    return whole if sharded else replica


def _holdings(evidence: Evidence) -> Holdings:
    value = evidence.value
    parameters = value(stated.PARAMETERS, 0.0) / _shards(evidence)
    width = 4.0 if evidence.text(run.PRECISION) in ("fp32", "tf32", "") else 2.0
    logits = value(m.LOGITS, 0.0)
    tokens = value(stated.SEQUENCE, 0.0) * value(stated.MICROBATCH, 1.0)
    if not logits and value(stated.VOCAB, 0.0) and tokens:
        logits = tokens * value(stated.VOCAB) * 6  # 16-bit logits and their fp32 copy
    largest = value(m.LARGEST_TENSOR, 0.0)
    activations = value(m.ACTIVATIONS, 0.0)
    if "copy of the largest" in evidence.text(m.TENSOR) and largest > 0.5 * activations:
        logits, activations = largest + value(m.REQUEST, 0.0), activations - largest
    phase, allocated = evidence.text(m.PHASE), value(m.ALLOCATED, 0.0)
    weights = value(m.WEIGHTS, 0.0) or parameters * width
    if not weights and phase == "optimizer":
        weights = allocated / ADAM_PARTS  # weights, gradients and two states of one width, nearly all in place
    optimizer = value(m.OPTIMIZER, 0.0) or (2 * weights if phase in ("optimizer", "backward") else 0.0)
    known = weights + optimizer + logits
    if not activations and not value(m.PEAK, 0.0) and phase in ("forward", "backward", "loss", "attention scores"):
        activations = max(0.0, allocated - known)
    unused, capacity = value(m.UNUSED_RESERVED, 0.0), value(m.CAPACITY, 0.0) or value(m.RESERVED, 0.0)
    return Holdings(
        weights_bytes=weights,
        gradients_bytes=value(m.GRADIENTS, 0.0),
        optimizer_bytes=optimizer,
        activations_bytes=activations,
        logits_bytes=logits,
        unused_bytes=unused if unused >= ROUNDING_SHARE * capacity else 0.0,
        request_bytes=0.0 if "copy of the largest" in evidence.text(m.TENSOR) else value(m.REQUEST, 0.0),
        full_precision=evidence.text(run.PRECISION) in ("fp32", "tf32"),
        recomputing=evidence.text(stated.RECOMPUTE) in ("full", "yes"),
        microbatch=value(stated.MICROBATCH, 0.0),
        devices=int(value(stated.GPUS, 1.0)) or 1,
    )
