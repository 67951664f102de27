"""How long a matrix product takes: tiles over multiprocessors, corrected by what an H200 measured nearby.

    time = max(waves of tiles x time of a tile, bytes / bandwidth)

A tile's time grows with k plus a constant (filling and draining its pipeline). The three constants were fitted on the
H200 table that ships beside this file; what remains there (4% in the median) is smoothed over neighbouring shapes.
Other GPUs use the same tiles at their own rates, with more doubt.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stallwise.errors import BadRequest
from stallwise.physics.costs.constants import sustained_ratio
from stallwise.physics.specs.hardware import Gpu, find_gpu

Array = NDArray[np.float64]

TILES = ((256, 128), (128, 256), (128, 128), (64, 256), (64, 128), (64, 64), (64, 32))  # cuBLAS's usual ones
MOST_SPLITS = 8  # split-k beyond this costs more in the final sum than it wins
TILE_SHARE = 0.766  # of peak that a full wave reaches on the H200
FILL_K = 254.0  # a tile takes as long as k + 254: prologue, epilogue, drain
BANDWIDTH_SHARE = 0.856  # of the data sheet's rate that a skinny product reads at
CALL_S = 37.5e-6  # one call from Python, nothing queued before it: the floor of the table's small shapes
CALL_BLEND = 2.7  # how softly that floor gives way to the product itself
SMALL_TILE_EXPONENT = 0.032  # smaller tiles reuse less: share x (area / largest)^0.032
# Large products run into the power limit, not the clock's: a card of 1400 W keeps a higher clock than one of 1000 W.
# What counts is power for each FLOP/s the card may be asked for, against the card each generation's rates are known of.
REFERENCE_CARDS = {
    "hopper": "h100-sxm", "blackwell": "gb200", "ampere": "a100-80gb-sxm", "cdna3": "mi300x", "cdna4": "mi355x",
    "ada": "l40s", "blackwell-rtx": "rtx-pro-6000",
}  # fmt: skip
POWER_EXPONENT = 0.6  # clock against power near the limit
MOST_POWER_RATIO = 1.17  # with power to spare the clock ends it: an H200 runs 781 before its limit bites, 670 after
# Matrix units narrowed by design (GeForce, H20) have this many times the power they can use: no clock settles lower.
NARROWED_RATIO = 2.0
# The largest product of each type in the table over its peak, relative to bf16.
TYPE_SHARE = {"bf16": 1.0, "fp16": 1.0, "tf32": 1.01, "fp32": 0.93, "fp8": 0.91, "int8": 0.91, "fp4": 0.80, "fp64": 1.0}
TABLE_TYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "float32_tf32": "tf32", "float8_e4m3": "fp8"}
# k or n that is no multiple of 16 bytes loses the fast loads: 4095 and 4097 ran 6 and 9 times slower than 4096.
MISALIGNED_RATIO = 7.0
NEIGHBOUR_WIDTH = 0.5  # in ln(shape); about a factor 1.6 in one direction
NEIGHBOUR_WEIGHT = 0.3  # a prior of no correction, worth this many neighbours
SPREAD_MEASURED = 1.14  # half-width of the 90% interval beside measured shapes, as a factor
SPREAD_ELSEWHERE = 1.30  # other GPUs


@dataclass(frozen=True, slots=True)
class GemmEstimate:
    """A predicted time with its 90% interval and what limits it."""

    seconds: float
    low_s: float
    high_s: float
    flop_per_s: float
    limit: str  # "compute", "memory" or "call"
    basis: str


def ideal_s(
    m: Any, n: Any, k: Any, gpu: Gpu, dtype: str = "bf16", *, groups: Any = 1, share: float = TILE_SHARE
) -> Array:
    """GPU time of `groups` products of m x k by k x n, without the cost of calling it; arrays broadcast."""
    m, n, k, groups = (np.asarray(x, dtype=np.float64) for x in (m, n, k, groups))
    rate = matrix_rate(gpu, dtype, share) / gpu.sm_count
    best: Array = np.full(np.broadcast(m, n, k, groups).shape, np.inf)
    largest = float(TILES[0][0] * TILES[0][1])
    for tile_m, tile_n in TILES:
        tile_s = 2.0 * tile_m * tile_n / (rate * (tile_m * tile_n / largest) ** SMALL_TILE_EXPONENT)
        tiles = groups * np.ceil(m / tile_m) * np.ceil(n / tile_n)
        whole = np.ceil(tiles / gpu.sm_count) * (k + FILL_K)
        split = np.clip(np.floor(gpu.sm_count / tiles), 1, MOST_SPLITS)
        parts = np.ceil(tiles * split / gpu.sm_count) * (k / split + 2 * FILL_K)
        best = np.minimum(best, np.minimum(whole, parts) * tile_s)
    size = value_bytes(dtype)
    moved = groups * (size * (m * k + n * k) + max(size, 2.0) * m * n)
    return np.asarray(np.maximum(best, moved / (gpu.bandwidth_byte_per_s * BANDWIDTH_SHARE)))


def matrix_rate(gpu: Gpu, dtype: str, share: float = TILE_SHARE) -> float:
    """FLOP/s that full waves of large tiles reach on this card at its power limit."""
    kind = _rate_type(dtype)
    return gpu.peak(kind) * TYPE_SHARE.get(kind, 1.0) * share * power_ratio(gpu)


def power_ratio(gpu: Gpu) -> float:
    """Sustained matrix rate against the card of this architecture that the constants were fitted on."""
    usual = find_gpu(REFERENCE_CARDS.get(gpu.architecture, ""))
    if usual is None or not gpu.power_w:
        return 1.0
    each, usual_each = (card.power_w / max(card.peak("bf16"), card.peak("fp16")) for card in (gpu, usual))
    if each > NARROWED_RATIO * usual_each:
        return MOST_POWER_RATIO * sustained_ratio(gpu.architecture, "bf16")
    return float(min((each / usual_each) ** POWER_EXPONENT, MOST_POWER_RATIO))


def call_s(m: Any, n: Any, k: Any, gpu: Gpu, dtype: str = "bf16", *, without: int = -1) -> Array:
    """Time of one lone call as a benchmark sees it; `without` leaves one measured row out of the correction."""
    seconds = _uncorrected(m, n, k, gpu, dtype)
    near = _correction(m, n, k, gpu, dtype, without)
    return np.asarray(seconds * np.exp(-near))


def gemm_time(m: int, n: int, k: int, gpu: Gpu, dtype: str = "bf16") -> GemmEstimate:
    """One product, with its doubt."""
    if min(m, n, k) < 1 or max(m, n, k) > 10**9:
        raise BadRequest(f"a product of {m} x {n} x {k} cannot be", hint="each side from 1 to a billion")
    busy = float(ideal_s(m, n, k, gpu, dtype))
    seconds = float(call_s(m, n, k, gpu, dtype))
    measured = gpu.name == "h200"
    spread = SPREAD_MEASURED if measured else SPREAD_ELSEWHERE
    moved_s = value_bytes(dtype) * (m * k + n * k + m * n) / (gpu.bandwidth_byte_per_s * BANDWIDTH_SHARE)
    limit = "call" if busy < CALL_S else "memory" if moved_s > 0.95 * busy else "compute"
    basis = "measured on an H200 at neighbouring shapes" if measured else "H200 shapes scaled by rates and SM count"
    return GemmEstimate(seconds, seconds / spread, seconds * spread, 2.0 * m * n * k / seconds, limit, basis)


def _uncorrected(m: Any, n: Any, k: Any, gpu: Gpu, dtype: str) -> Array:
    busy = ideal_s(m, n, k, gpu, dtype)
    per_16_bytes = 16 / value_bytes(dtype)
    crooked = (np.mod(n, per_16_bytes) != 0) | (np.mod(k, per_16_bytes) != 0)
    busy = np.where(crooked & (value_bytes(dtype) <= 2), busy * MISALIGNED_RATIO, busy)
    return np.asarray((busy**CALL_BLEND + CALL_S**CALL_BLEND) ** (1 / CALL_BLEND))


def _correction(m: Any, n: Any, k: Any, gpu: Gpu, dtype: str, without: int) -> Array:
    """Mean log error of the tile model on measured shapes nearby; zero on GPUs nobody measured."""
    shape = np.broadcast(np.asarray(m), np.asarray(n), np.asarray(k)).shape
    if gpu.name != "h200":
        return np.zeros(shape)
    points, errors, rows = _residuals(dtype)
    if not len(points):
        return np.zeros(shape)
    wanted = np.stack([np.broadcast_to(np.log(np.asarray(x, dtype=np.float64)), shape).ravel() for x in (m, n, k)], 1)
    distances = ((wanted[:, None, :] - points[None, :, :]) ** 2).sum(-1)
    weight = np.exp(-distances / (2 * NEIGHBOUR_WIDTH**2))
    weight[:, rows == without] = 0.0
    return np.asarray((weight @ errors / (weight.sum(1) + NEIGHBOUR_WEIGHT)).reshape(shape))


@cache
def table() -> tuple[dict[str, str], ...]:
    """The H200's measured products, as recorded."""
    text = (Path(__file__).parent / "measured" / "gemm_h200.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


@cache
def _residuals(dtype: str) -> tuple[Array, Array, NDArray[np.int64]]:
    card = find_gpu("h200")
    assert card is not None
    kept = [(i, r) for i, r in enumerate(table()) if TABLE_TYPES.get(r["dtype"]) == _rate_type(dtype)]
    if not kept:
        return np.zeros((0, 3)), np.zeros(0), np.zeros(0, dtype=np.int64)
    m, n, k, ms = (np.array([float(r[c]) for _, r in kept]) for c in ("m", "n", "k", "ms"))
    errors = np.log(_uncorrected(m, n, k, card, dtype) / (ms * 1e-3))
    return np.log(np.stack([m, n, k], 1)), errors, np.array([i for i, _ in kept])


def _rate_type(dtype: str) -> str:
    return {"mxfp8": "fp8", "nvfp4": "fp4", "mxfp4": "fp4"}.get(dtype, dtype)


def value_bytes(dtype: str) -> float:
    """Bytes of one value."""
    from stallwise.physics.specs.dtype import bytes_per

    return bytes_per(dtype)
