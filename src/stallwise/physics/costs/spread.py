"""How sure a predicted step is: what differs between publishers, within one, between unsaid settings, and beyond rows.

All parts are standard deviations of ln(measured / predicted), added as squares; the interval is 90%. Between and within
come from published runs, each publisher predicted by constants that never saw it (`bench/fit_constants.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, sqrt

from stallwise.physics.costs.fitted import table
from stallwise.physics.specs.cluster import Cluster
from stallwise.physics.specs.model import Model
from stallwise.physics.specs.recipe import Recipe

NINETY = 1.645  # standard deviations that hold 90% of a normal
NEW_CARD, NEW_FRAMEWORK, NEW_SCALE = 0.12, 0.08, 0.05  # no row of this generation, this framework, this many GPUs
UNTOLD_NETWORK, UNTOLD_RELEASE = 0.07, 0.05  # rate between nodes not stated; year of the software not stated
UNKNOWN_WIRING_RATIO = 3.0  # cards without a switch, slots and peer access not told: so many times as wide
CALIBRATED_BETWEEN_SHARE = 0.35  # of it that is left after one measured step of the same cluster


@dataclass(frozen=True)
class Doubt:
    """Parts of an interval, each a standard deviation of the logarithm."""

    between: float
    within: float
    knobs: float
    beyond: float  # card, framework or scale without rows, network or release not stated
    ratio: float = 1.0  # unknown wiring widens everything

    @property
    def sigma(self) -> float:
        """All of it."""
        return self.ratio * sqrt(self.between**2 + self.within**2 + self.knobs**2 + self.beyond**2)

    @property
    def factor(self) -> float:
        """Half-width of the 90% interval as a factor."""
        return exp(NINETY * self.sigma)


def family_of(model: Model, recipe: Recipe) -> str:
    """The kind of run whose published errors apply."""
    if recipe.lora_rank:
        return "lora"
    if model.experts:
        return "moe"
    return "dense-fp8" if recipe.eight_bit else "dense-bf16"


def doubt_of(
    model: Model,
    cluster: Cluster,
    recipe: Recipe,
    *,
    knobs: float = 0.0,
    calibrated: bool = False,
    between: float | None = None,
    beyond: bool = True,
) -> Doubt:
    """What is known about runs like this one; `between` where more is known than that publishers differ."""
    spread = table()["spread"][family_of(model, recipe)]
    known = table()["known"]
    new = 0.0
    if cluster.gpu.architecture not in known["architectures"]:
        new += NEW_CARD**2
    if recipe.framework not in known["frameworks"]:
        new += NEW_FRAMEWORK**2
    if cluster.gpus > known["most_gpus"]:
        new += NEW_SCALE**2
    if cluster.nodes > 1 and not cluster.network_stated:
        new += UNTOLD_NETWORK**2
    if not recipe.software_year:
        new += UNTOLD_RELEASE**2
    between_sd, within = float(spread["between"]) if between is None else between, float(spread["within"])
    if calibrated:
        between_sd, knobs = between_sd * CALIBRATED_BETWEEN_SHARE, knobs * CALIBRATED_BETWEEN_SHARE
    wiring = cluster.gpus > 1 and not cluster.wiring_known and not calibrated
    return Doubt(
        between_sd,
        within,
        knobs,
        sqrt(new) if beyond and not calibrated else 0.0,
        UNKNOWN_WIRING_RATIO if wiring else 1.0,
    )
