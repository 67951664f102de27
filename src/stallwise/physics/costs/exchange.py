"""Collective times for whole arrays of sizes: the model of `collectives`, tabulated by size and read off in between."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from stallwise.physics.costs.collectives import Op, collective_time
from stallwise.physics.costs.gemm import Array
from stallwise.physics.costs.topology import Fabric

SIZES = 4.0 ** np.arange(5, 19)  # 1 KiB to 64 GiB; between them time is close to straight in log-log


@lru_cache(maxsize=4096)
def _curve(fabric: Fabric, op: Op, ranks: int, per_domain: int) -> Array:
    # A group with few ranks per domain spans more GPUs than it has ranks: it meets the narrow level sooner.
    spacing = fabric.gpus_per_domain / max(per_domain, 1)
    levels = tuple(replace(level, gpus=max(int(level.gpus / spacing), 1)) for level in fabric.levels)
    fabric = replace(fabric, levels=levels) if levels else fabric
    times = [collective_time(op, float(size), ranks, fabric, per_domain=per_domain).seconds for size in SIZES]
    return np.asarray(np.log(np.maximum(np.array(times), 1e-12)))


def seconds(fabric: Fabric, op: Op, size_bytes: Any, ranks: Any, per_domain: Any) -> Array:
    """Time of one collective for each element; zero where the group is a single rank or nothing is sent."""
    size, ranks, local = np.broadcast_arrays(
        np.asarray(size_bytes, dtype=np.float64), np.asarray(ranks, np.int64), np.asarray(per_domain, np.int64)
    )
    out = np.zeros(size.shape)
    code = ranks * (1 << 20) + local
    wanted = np.log(np.maximum(size, SIZES[0]))
    for one in np.unique(code):
        n, near = int(one) >> 20, int(one) & ((1 << 20) - 1)
        if n < 2:
            continue
        here = code == one
        curve = _curve(fabric, op, n, max(min(near, n), 1))
        found = np.interp(wanted[here], np.log(SIZES), curve)
        beyond = np.maximum(wanted[here] - np.log(SIZES[-1]), 0.0)  # far above the table only bandwidth counts
        out[here] = np.exp(found + beyond)
    out[size <= 0] = 0.0
    return out
