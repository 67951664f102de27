"""Small workloads share a card: MIG cuts it into slices that are paid whole, MPS packs to the brim and isolates nothing.

MIG on an H100 has seven compute and eight memory slices; a workload takes as many as the scarcer of the two asks for.
"""

from __future__ import annotations

from math import ceil, floor

from stallwise.units import Unit

EQUATION = (
    "MIG: floor(7 / max(ceil(7 u), ceil(8 m / M)))    MPS: floor(min(1 / u, M / m))    price each = card / workloads"
)
SOURCE = "NVIDIA MIG user guide (profiles 1g.10gb to 7g.80gb of the H100); NVIDIA MPS documentation."
FOLK = """
"MIG is the safe one": memory, cache and faults stay apart, but what a slice does not use is lost to all. "MPS is free": it fills
the card, and one process that faults or floods the memory bandwidth takes the others along. Time slicing without MPS runs one
at a time: no gain for kernels that would fit beside each other.
"""
UNITS = {
    "busy_share": Unit.SHARE, "memory_bytes": Unit.BYTE, "card_bytes": Unit.BYTE, "dollar_per_hour": Unit.DOLLAR,
    "mig_slices": Unit.COUNT, "mig_workloads": Unit.COUNT, "mps_workloads": Unit.COUNT, "alone_dollar": Unit.DOLLAR,
    "mig_dollar": Unit.DOLLAR, "mps_dollar": Unit.DOLLAR,
}  # fmt: skip
COMPUTE_SLICES, MEMORY_SLICES = 7, 8


def evaluate(
    busy_share: float = 0.2, memory_bytes: float = 12e9, card_bytes: float = 80e9, dollar_per_hour: float = 2.5
) -> dict[str, float]:
    """How many such workloads a card serves each way, and what one costs an hour."""
    slices = max(ceil(COMPUTE_SLICES * busy_share), ceil(MEMORY_SLICES * memory_bytes / card_bytes), 1)
    mig = floor(COMPUTE_SLICES / slices)
    mps = floor(min(1.0 / busy_share, card_bytes / memory_bytes))
    return {
        "mig_slices": slices, "mig_workloads": mig, "mps_workloads": mps, "alone_dollar": dollar_per_hour,
        "mig_dollar": dollar_per_hour / mig, "mps_dollar": dollar_per_hour / mps,
    }  # fmt: skip
