"""Grouped products: many small matrices, one per expert, each met by its own share of the tokens.

    time = max(tiles of all experts over multiprocessors x time of a tile, weights of the experts met / bandwidth)

Every expert rounds its rows up to whole tiles, so few tokens per expert waste most of a tile, and its weights are read
however few rows it has. Where tokens fall by chance, experts that meet none are not read, and the others round up
half a tile on average.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stallwise.physics.costs.gemm import Array, matrix_rate, value_bytes
from stallwise.physics.specs.hardware import Gpu

TILES = ((128, 256), (128, 128), (64, 128), (64, 64))  # rows x columns that grouped kernels are built for
SMALL_TILE_SHARE = {256 * 128: 1.0, 128 * 128: 0.92, 64 * 128: 0.75, 64 * 64: 0.55}  # smaller tiles reuse less
# Against plain products of the same type on the H200 (operators_h200_grouped.csv): 16 bit as fast, scaled 8 bit not.
GROUPED_SHARE = {2.0: 1.0, 1.0: 0.72, 0.5: 0.72}
READ_SHARE = 0.66  # of the data sheet's bandwidth at which few rows per expert read the weights there
FILL_K = 254.0  # a tile takes as long as k + 254: prologue, epilogue, drain (as in plain products)


def met_share(tokens_per_expert: Any) -> Array:
    """Share of experts that meet at least one token when tokens fall by chance."""
    return np.asarray(-np.expm1(-np.maximum(np.asarray(tokens_per_expert, dtype=np.float64), 0.0)))


def grouped_gemm_s(
    tokens_per_expert: Any, experts: Any, n: Any, k: Any, gpu: Gpu, dtype: str = "bf16", *, by_chance: bool = False
) -> Array:
    """GPU seconds of (tokens x k) by (k x n) for each of `experts` on one card, the mean expert meeting so many tokens.

    With `by_chance` tokens are spread at random over experts (serving, free routing), otherwise evenly (benchmarks that
    force balance). All arguments broadcast; launch time is not included.
    """
    rows, experts, n, k = (np.asarray(x, dtype=np.float64) for x in (tokens_per_expert, experts, n, k))
    met = experts * met_share(rows) if by_chance else experts * (rows > 0)
    rate = matrix_rate(gpu, dtype) * GROUPED_SHARE.get(value_bytes(dtype), 1.0) / gpu.sm_count
    best: Array = np.full(np.broadcast(rows, experts, n, k).shape, np.inf)
    for tile_m, tile_n in TILES:
        tile_s = 2.0 * tile_m * tile_n / (rate * SMALL_TILE_SHARE[tile_m * tile_n])
        high = np.maximum(experts * rows / tile_m + 0.5 * met, met) if by_chance else experts * np.ceil(rows / tile_m)
        tiles = high * np.ceil(n / tile_n)
        waves = np.ceil(tiles / gpu.sm_count)
        best = np.minimum(best, waves * (k + FILL_K) * tile_s)
    size = value_bytes(dtype)
    moved = met * size * n * k + experts * rows * (size * k + max(size, 2.0) * n)
    return np.asarray(np.maximum(best, moved / (gpu.bandwidth_byte_per_s * READ_SHARE)))
