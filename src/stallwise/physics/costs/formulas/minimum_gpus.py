"""The fewest GPUs that can hold the model states, before a single activation.

Everything sharded evenly. The usable share leaves out the CUDA context, NCCL buffers and what the allocator cannot use.
"""

from __future__ import annotations

from math import ceil

from stallwise.units import Unit

EQUATION = "n = ceil(state / (memory x usable))"
SOURCE = "Arithmetic; a CUDA context with NCCL takes 1 to 3 GB of each GPU."
FOLK = """
1.12 TB / 80 GB = 14 holds states only, and only fully sharded (ZeRO-3). At 16 GPUs activations have 10 GB each left.
"""
UNITS = {"state_bytes": Unit.BYTE, "memory_bytes": Unit.BYTE, "usable_share": Unit.SHARE, "left_bytes": Unit.BYTE}


def evaluate(state_bytes: float = 1.12e12, memory_bytes: float = 80e9, usable_share: float = 1.0) -> dict[str, float]:
    """GPUs, and what is left on each."""
    gpus = ceil(state_bytes / (memory_bytes * usable_share))
    return {"gpus": gpus, "left_bytes": memory_bytes * usable_share - state_bytes / gpus}
