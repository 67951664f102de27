"""What published runs of the same framework and card generation say about a prediction.

Publishers differ for two reasons: what they share with all who run this framework on these cards, and what is theirs
alone. `bench/fit_constants.py` writes how far each publisher's runs lay from predictions that never saw it, and which
share of the scatter is common; a mean over few publishers is shrunk by its own doubt, and nobody speaks for himself.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, sqrt

from stallwise.physics.costs.fitted import table

NO_FRAMEWORK = "other"  # everybody's own program: what one of them needs says nothing of the next


@dataclass(frozen=True)
class Kin:
    """Published runs of one framework on one generation of cards."""

    log_ratio: float  # to be added to the logarithm of seconds
    between: float  # what is left of the doubt between publishers
    publishers: tuple[str, ...]
    rows: int

    @property
    def ratio(self) -> float:
        """Their time over the prediction's, as far as it is believed."""
        return exp(self.log_ratio)


def kind_of(family: str) -> str:
    """Families whose runs speak for each other."""
    return family if family in ("moe", "lora") else "dense"


def kin_of(family: str, framework: str, architecture: str, *, without: str = "") -> Kin | None:
    """Runs of the same framework and cards, one publisher left out; None where there are none."""
    if framework == NO_FRAMEWORK:
        return None
    kind = kind_of(family)
    kin = [
        (float(c["log_ratio"]), int(c["rows"]), str(c["publisher"]))
        for c in table()["kin"]["runs"]
        if (c["kind"], c["framework"], c["architecture"]) == (kind, framework, architecture)
        and c["publisher"] != without
    ]
    if not kin:
        return None
    spread, common = table()["spread"][family], float(table()["kin"]["common_share"])
    shared, own = common * spread["between"] ** 2, (1 - common) * spread["between"] ** 2
    weights = [1 / (own + spread["within"] ** 2 / rows) for _, rows, _ in kin]
    trust = shared / (shared + 1 / sum(weights))
    mean = sum(w * x for w, (x, _, _) in zip(weights, kin, strict=True)) / sum(weights)
    left = sqrt(shared * (1 - trust) + own)
    return Kin(trust * mean, left, tuple(name for _, _, name in kin), sum(rows for _, rows, _ in kin))
