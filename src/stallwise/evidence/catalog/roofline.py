"""How near the device's work is to what the card allows: the yardstick of every all-clear about a trace."""

from __future__ import annotations

from stallwise.evidence.capture import TORCH_TRACE
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit

_P, _T, _C = Unit.SHARE, Unit.TEXT, TORCH_TRACE

NEAR_SHARE = Quantity("roof.near_share", _P, "busy time in kernels that are near a roof of the card", _C)
KNOWN_SHARE = Quantity("roof.known_share", _P, "busy time in kernels whose distance from a roof is known", _C)
BY_SHAPE_SHARE = Quantity("roof.by_shape_share", _P, "busy time whose FLOPs or bytes follow from recorded shapes", _C)
UNREAD_SHARE = Quantity("roof.unread_share", _P, "busy time in kernels whose purpose nobody knows", _C)
UNREAD_NAME = Quantity("roof.unread_name", _T, "the longest of them", _C)
MATRIX_SHARE = Quantity("roof.matrix_share", _P, "busy time in matrix products, convolutions and attention", _C)
MATRIX_RATE_SHARE = Quantity("roof.matrix_rate_share", _P, "their rate over the dense peak, where shapes tell", _C)
MEMORY_RATE_SHARE = Quantity(
    "roof.memory_rate_share", _P, "bytes a second over the memory's peak, where shapes tell", _C
)
ATTENTION_SHARE = Quantity("roof.attention_share", _P, "busy time in attention kernels", _C)
ATTENTION_BYTES_SHARE = Quantity(
    "roof.attention_bytes_share", _P, "bytes a second of attention over the memory's peak, where shapes tell", _C
)
GEMM_BYTES_SHARE = Quantity(
    "roof.product_bytes_share", _P, "bytes a second of matrix products over the memory's peak, where shapes tell", _C
)
STEP_SPREAD = Quantity("roof.step_spread", _P, "longest over shortest step in the trace, minus one", _C)
