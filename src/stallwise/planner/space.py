"""Every layout that a model, a batch and a number of GPUs allow: whole numbers that divide, nothing filtered by taste."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from stallwise.errors import BadRequest
from stallwise.physics.costs.grid import RECOMPUTE_CODE, Grid
from stallwise.physics.specs.cluster import Cluster
from stallwise.physics.specs.model import Model
from stallwise.physics.specs.workload import Workload

MICRO_BATCHES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
MOST_CP = 128
MOST_VIRTUAL = 16
SHORTEST_SLICE = 512  # tokens per context-parallel rank below which nothing is left to overlap


@dataclass(frozen=True)
class Fixed:
    """Axes the user pins; None is free."""

    tp: int | None = None
    pp: int | None = None
    cp: int | None = None
    ep: int | None = None
    dp: int | None = None
    micro_batch: int | None = None
    zero: int | None = None
    recompute: str | None = None
    virtual_stages: int | None = None


def divisors(number: int) -> list[int]:
    """All of them, in order."""
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return small + [number // d for d in reversed(small) if d * d != number]


def enumerate_layouts(model: Model, cluster: Cluster, workload: Workload, fixed: Fixed | None = None) -> Grid:
    """All layouts that use every GPU."""
    fixed = fixed or Fixed()
    blocks = [
        _block(model, workload, fixed, tp, pp, cp, dp, ep, cluster.domain)
        for tp, pp, cp, dp in _axes(model, cluster, workload, fixed)
        for ep in _expert_axes(model, fixed, tp * cp * dp)
    ]
    blocks = [b for b in blocks if len(b["tp"])]
    if not blocks:
        raise BadRequest(
            f"no layout of {model.name} uses {cluster.gpus} GPUs with a global batch of {workload.global_batch}",
            hint=_nearest(model, cluster, workload, fixed),
        )
    return Grid(**{f.name: np.concatenate([b[f.name] for b in blocks]) for f in fields(Grid)})


def _axes(model: Model, cluster: Cluster, workload: Workload, fixed: Fixed) -> list[tuple[int, int, int, int]]:
    found = []
    for tp in [fixed.tp] if fixed.tp else divisors(model.heads):
        if model.heads % tp or cluster.gpus % tp:
            continue
        for pp in [fixed.pp] if fixed.pp else divisors(cluster.gpus // tp):
            if pp > model.layers or (cluster.gpus // tp) % pp:
                continue
            for cp in [fixed.cp] if fixed.cp else divisors(cluster.gpus // (tp * pp)):
                if cp > MOST_CP or (cp > 1 and workload.seq / cp < SHORTEST_SLICE) or workload.seq % cp:
                    continue
                if (cluster.gpus // (tp * pp)) % cp:
                    continue
                dp = cluster.gpus // (tp * pp * cp)
                if workload.global_batch % dp == 0 and fixed.dp in (None, dp):
                    found.append((tp, pp, cp, dp))
    return found


def _expert_axes(model: Model, fixed: Fixed, ranks: int) -> list[int]:
    if not model.experts:
        return [1]
    wanted = [fixed.ep] if fixed.ep else divisors(model.experts)
    return [ep for ep in wanted if ranks % ep == 0 and model.experts % ep == 0]


def _block(
    model: Model, workload: Workload, fixed: Fixed, tp: int, pp: int, cp: int, dp: int, ep: int, domain: int
) -> dict[str, Any]:
    """All choices that share one mesh."""
    per_rank = workload.global_batch // dp
    sizes = [b for b in ([fixed.micro_batch] if fixed.micro_batch else MICRO_BATCHES) if per_rank % b == 0]
    virtual = [1] if pp == 1 else list(range(1, min(MOST_VIRTUAL, model.layers // pp) + 1))
    if fixed.virtual_stages:
        virtual = [v for v in virtual if v == fixed.virtual_stages]
    whole = [v for v in virtual if v == 1 or model.layers % (pp * v) == 0 or (model.layers + 2) % (pp * v) == 0]
    zeros = [fixed.zero] if fixed.zero is not None else ([0, 1, 2, 3] if dp * cp > 1 else [0])
    again = [RECOMPUTE_CODE[fixed.recompute]] if fixed.recompute else [0, 1, 2, *([3] if model.experts else [])]
    shards = [dp * cp, *_hybrid(tp, dp * cp, domain)]
    axes = np.meshgrid(sizes, whole, zeros, again, shards, indexing="ij")
    mb, vp, zero, recompute, shard = (x.ravel() for x in axes)
    many = per_rank // np.maximum(mb, 1)
    keep = (vp == 1) | (many % pp == 0)  # interleaving runs microbatches in rounds of PP
    keep &= (shard == dp * cp) | (zero == 3)  # HSDP: weights sharded inside a domain, copies between domains
    mb, vp, zero, recompute, shard, many = (x[keep].astype(np.int64) for x in (mb, vp, zero, recompute, shard, many))
    size = len(mb)

    def same(value: int) -> Any:
        return np.full(size, value, dtype=np.int64)

    return {
        "tp": same(tp), "pp": same(pp), "dp": same(dp), "cp": same(cp), "ep": same(ep),
        "etp": same(1 if ep > 1 else tp), "vp": vp, "sp": np.full(size, tp > 1), "zero": zero,
        "shards": shard, "mb": mb, "recompute": recompute, "micro_batches": many,
    }  # fmt: skip


def _hybrid(tp: int, ranks: int, domain: int) -> list[int]:
    """The shard group that fills one NVLink domain, where it is smaller than all ranks."""
    inside = domain // tp
    return [inside] if 1 < inside < ranks and ranks % inside == 0 else []


def _nearest(model: Model, cluster: Cluster, workload: Workload, fixed: Fixed) -> str:
    """What to change: the closest number of GPUs that divides the batch."""
    if fixed.tp and model.heads % fixed.tp:
        near = min(divisors(model.heads), key=lambda d: abs(d - (fixed.tp or 1)))
        return f"TP must divide the {model.heads} heads: the nearest is {near}"
    if fixed.pp and fixed.pp > model.layers:
        return f"PP cannot exceed the {model.layers} layers: the nearest is {model.layers}"
    for gpus in sorted(range(max(cluster.gpus - 256, 1), cluster.gpus + 257), key=lambda g: abs(g - cluster.gpus)):
        try_tp = [t for t in divisors(model.heads) if gpus % t == 0]
        if any(
            workload.global_batch % d == 0
            for t in try_tp
            for d in divisors(gpus // t)
            if gpus // t // d <= model.layers
        ):
            return f"the nearest number of GPUs that works is {gpus}, or a global batch that is a multiple of the GPUs"
    return f"a global batch of {cluster.gpus}"
