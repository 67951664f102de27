"""A balanced pipeline idles for p-1 microbatches, whichever of the two fractions one quotes.

The same idle time over useful time or over the whole step: two numbers, often mixed up. Interleaving v chunks per
device divides the idle time by v.
"""

from __future__ import annotations

from stallwise.units import Unit

EQUATION = "of useful time: x = (p-1)/(v m)    of the step: x/(1+x) = (p-1)/(v m + p - 1)"
SOURCE = "Narayanan et al. 2021 (Megatron-LM, arXiv 2104.04473), section 2.2."
FOLK = """
(p-1)/m is often called "the bubble fraction of the step": at p = 8, m = 8 it is 87.5% of useful time but 46.7% of the
step. It also assumes equal stages and free transfers; for interleaved schedules it lacks the v, and m must divide by p.
"""
UNITS = {"useful_ratio": Unit.SHARE, "step_share": Unit.SHARE, "held_microbatches": Unit.COUNT}


def evaluate(stages: int = 8, microbatches: int = 32, chunks: int = 1) -> dict[str, float]:
    """Idle over useful time, idle over the step, and activations held on the first stage."""
    useful = (stages - 1) / (chunks * microbatches)
    held = stages * (1 + (stages - 1) / (stages * chunks)) if chunks > 1 else stages
    return {"useful_ratio": useful, "step_share": useful / (1 + useful), "held_microbatches": min(held, microbatches)}
