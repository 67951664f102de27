"""The eight numbers that physics does not give: how far real jobs stay behind operators measured alone.

Each has a prior with its doubt and is moved from there by the published runs, every publisher counting alike and each
allowed a scale of its own, so that nothing here stands for one of them. `stallwise plan calibrate` moves them again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stallwise.tables import parsed

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Prior:
    """A multiplier of nominal time (or a share), and the factor within which two thirds of the belief lies."""

    value: float
    sigma: float  # of its logarithm
    meaning: str


PRIORS: dict[str, Prior] = {
    "products": Prior(1.0, 0.03, "matrix products in training against the tile model at sustained clocks"),
    "attention": Prior(1.05, 0.05, "the attention core against its kernel measured alone"),
    "memory": Prior(1.2, 0.08, "norms, activations, residuals and casts against copies at full bandwidth"),
    "launch": Prior(1.5e-5, 0.12, "host seconds per kernel, its Python included (our H200 runs)"),
    "messages": Prior(1.0, 0.10, "messages between ranks in a step against collectives measured alone"),
    "hidden": Prior(0.75, 0.10, "share of a pass that gradient and parameter traffic can hide behind"),
    "jitter": Prior(0.005, 0.30, "step time per doubling of nodes lost to the slowest rank"),
    "experts": Prior(1.0, 0.15, "what an expert layer costs beside products and messages: routing, sorting, waiting"),
}
NAMES = tuple(PRIORS)
INDEX = {name: i for i, name in enumerate(NAMES)}


def prior_values() -> Array:
    """All priors as one vector."""
    return np.array([p.value for p in PRIORS.values()])


def prior_sigmas() -> Array:
    """Their doubts."""
    return np.array([p.sigma for p in PRIORS.values()])


@cache
def _sustained() -> dict[str, dict[str, float]]:
    text = (Path(__file__).parent / "measured" / "sustained.toml").read_text(encoding="utf-8")
    found: dict[str, Any] = parsed(text)["ratio"]
    return {name: {bits: float(x) for bits, x in row.items()} for name, row in found.items()}


def sustained_ratio(architecture: str, precision: str, *, sustained: bool = True) -> float:
    """Products in hours of training over one short call, for this generation and type; a few steps stay short."""
    if not sustained:
        return 1.0
    bits = {"fp8": "8", "mxfp8": "8", "nvfp4": "4"}.get(precision, "16")
    return _sustained().get(architecture, _sustained()["other"])[bits]
