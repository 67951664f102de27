"""A larger batch averages more noise away and bears a larger learning rate: by its root with Adam, in proportion with SGD.

The noise of a mean falls with the root of what is averaged. SGD's step is the gradient itself, Adam's is divided by its size.
"""

from __future__ import annotations

from math import sqrt

from stallwise.units import Unit

EQUATION = "k = batch / base    Adam: rate = base rate x sqrt(k)    SGD: rate = base rate x k, with a warm-up"
SOURCE = "Malladi et al. 2022 (arXiv 2205.10287) for Adam; Goyal et al. 2017 (arXiv 1706.02677) for SGD."
FOLK = """
"Double the batch, double the rate" is the rule of SGD; with Adam it is the root of two, and beyond the critical batch no rate
makes up for the steps that are missing. Changing only data parallelism changes the global batch: keep it, or scale the rate.
"""
UNITS = {
    "batch": Unit.COUNT, "base_batch": Unit.COUNT, "batch_ratio": Unit.RATIO, "adam_rate_ratio": Unit.RATIO,
    "sgd_rate_ratio": Unit.RATIO, "steps_ratio": Unit.RATIO,
}  # fmt: skip


def evaluate(batch: int = 1024, base_batch: int = 256) -> dict[str, float]:
    """How much larger the rate becomes by either rule, and how many steps remain for the same samples."""
    ratio = batch / base_batch
    return {
        "batch_ratio": ratio,
        "adam_rate_ratio": sqrt(ratio),
        "sgd_rate_ratio": ratio,
        "steps_ratio": 1.0 / ratio,
    }
