"""Layers ranked by what FP8 does to them on long inputs when its scales were calibrated on short ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stallwise.physics.costs.fp8 import quantise, relative_error, saturated_share, scales

ROUNDING = 0.035  # relative error of E4M3 with a fitting scale: 0.026 for bell-shaped data, a little more with tails
WORSE = 1.25  # times the error of the next finer scaling: then the finer one is worth its cost
HARMFUL = 1.5  # times ordinary rounding: below, there is nothing to repair


@dataclass(frozen=True, slots=True)
class Damage:
    """One layer under each scaling."""

    layer: str
    short_amax: float
    long_amax: float
    saturated_share: float
    errors: dict[str, float]  # "static" (calibrated on short inputs), "tensor", "row", "block"
    repair: str

    @property
    def damage(self) -> float:
        """Error with the calibrated scale beyond what the best scaling leaves."""
        return self.errors["static"] - min(self.errors.values())

    @property
    def harmed(self) -> bool:
        """Beyond ordinary rounding."""
        return self.errors["static"] > HARMFUL * ROUNDING or self.saturated_share > 1e-3

    def to_row(self, context: int) -> dict[str, Any]:
        """As a row of layer statistics, which `stallwise diagnose` reads."""
        return {"layer": self.layer, "context": context, "amax": self.long_amax, "calibrated_amax": self.short_amax,
                "saturated_fraction": self.saturated_share, "rel_error": self.errors["static"],
                "errors": self.errors, "repair": self.repair}  # fmt: skip


def damage_of(layer: str, rows: NDArray[np.float64], short_amax: float, long_amax: float) -> Damage:
    """Quantises the rows under each scaling."""
    errors = {"static": relative_error(rows, quantise(rows, scales(rows, "static", short_amax)))}
    for how in ("tensor", "row", "block"):
        errors[how] = relative_error(rows, quantise(rows, scales(rows, how)))
    clipped = saturated_share(rows, short_amax)
    return Damage(layer, short_amax, long_amax, clipped, errors, _repair(errors, clipped))


def _repair(errors: dict[str, float], clipped: float) -> str:
    """The cheapest scaling whose error is near the best one's."""
    if errors["static"] <= HARMFUL * ROUNDING and clipped <= 1e-3:
        return "none needed"
    best = min(errors.values())
    if best > HARMFUL * ROUNDING:
        return "keep in BF16"
    if errors["tensor"] <= WORSE * best:
        return "recalibrate with long inputs"
    return "per-row scales" if errors["row"] <= WORSE * best else "per-block scales"


def rank_damage(short: Any, long: Any) -> list[Damage]:
    """Layers seen in both passes, most harmed first. `short` and `long` hold rows and amax by layer."""
    found = [
        damage_of(name, np.asarray(rows, dtype=np.float64), short.amax[name], long.amax[name])
        for name, rows in long.rows.items()
        if name in short.amax
    ]
    return sorted(found, key=lambda d: d.damage, reverse=True)
