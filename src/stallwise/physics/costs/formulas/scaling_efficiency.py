"""A speed-up below the number of GPUs tells how much of a step is not divided.

If the work divides perfectly, what is left of the step is exposed communication (or waiting, or imbalance).
"""

from __future__ import annotations

from stallwise.units import Unit

EQUATION = "efficiency = speed-up / n    exposed share of the step = 1 - speed-up / n"
SOURCE = "Amdahl 1967, read backwards."
FOLK = """
"3x on 8 GPUs, so communication costs 3/8": 62.5% of every step is exposed. Halving it does not double the speed either:
it gives 4.4x.
"""
UNITS = {
    "speedup_ratio": Unit.RATIO, "efficiency_share": Unit.SHARE, "exposed_share": Unit.SHARE,
    "half_removed_ratio": Unit.RATIO,
}  # fmt: skip


def evaluate(gpus: int = 8, speedup_ratio: float = 3.0) -> dict[str, float]:
    """Efficiency, the exposed share, and the speed-up once half of the exposed time is gone."""
    efficiency = speedup_ratio / gpus
    exposed = 1 - efficiency
    return {
        "efficiency_share": efficiency,
        "exposed_share": exposed,
        "half_removed_ratio": speedup_ratio / (1 - exposed / 2),
    }
