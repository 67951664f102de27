"""What the card at hand can do at all, so that no advice asks for the impossible."""

from __future__ import annotations

from stallwise.evidence.capture import NVIDIA_SMI, TORCH_TRACE
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit

MATRIX_TYPES = Quantity("card.matrix_types", Unit.TEXT, "number types that its matrix units take", NVIDIA_SMI)
HAND_WRITTEN_SHARE = Quantity(
    "work.hand_written_share",
    Unit.SHARE,
    "matrix work on ordinary cores launched outside any library operator",
    TORCH_TRACE,
)
