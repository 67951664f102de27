"""Full recompute repeats the forward: a third more arithmetic, and a slow-down of its own.

A step is one forward and two forwards' worth of backward; with recompute it is four instead of three. Communication
inside the layer is repeated too.
"""

from __future__ import annotations

from stallwise.units import Unit

EQUATION = "FLOPs: (1 + 1 + 2) / (1 + 2) = 4/3    HFU = MFU x FLOPs done / FLOPs needed"
SOURCE = "Korthikanti et al. 2022 (arXiv 2205.05198), table 4: 19.6 ms a layer, 27.2 with full, 20.9 with selective."
FOLK = """
"33% slower" is the arithmetic: the measured layer lost 39% with full recompute and 7% with selective. HFU rises with
recompute while the run gets slower, so compare MFU.
"""
UNITS = {
    "plain_s": Unit.SECOND, "recompute_s": Unit.SECOND, "flop_ratio": Unit.RATIO, "time_ratio": Unit.RATIO,
    "mfu_share": Unit.SHARE, "hfu_share": Unit.SHARE,
}  # fmt: skip


def evaluate(plain_s: float = 19.6e-3, recompute_s: float = 27.2e-3, mfu_share: float = 0.40) -> dict[str, float]:
    """By arithmetic and by measurement; HFU of a run with this MFU under full recompute."""
    return {"flop_ratio": 4 / 3, "time_ratio": recompute_s / plain_s, "hfu_share": mfu_share * 4 / 3}
