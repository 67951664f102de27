# ruff: noqa: E501  (lines as the libraries print them)
"""Out-of-memory messages with the traceback above them."""

from __future__ import annotations

HINT = " If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."
GIB = 2.0**30


def size(value_bytes: float) -> str:
    """As PyTorch writes sizes."""
    return f"{value_bytes / GIB:.2f} GiB" if value_bytes >= GIB else f"{value_bytes / 2**20:.2f} MiB"


def message(request: float, capacity: float, free: float, process: float, allocated: float, unused: float) -> str:
    """All in bytes."""
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {size(request)}. GPU 0 has a total capacity of "
        f"{size(capacity)} of which {size(free)} is free. Including non-PyTorch memory, this process has {size(process)} memory in use. "
        f"Of the allocated memory {size(allocated)} is allocated by PyTorch, and {size(unused)} is reserved by PyTorch but unallocated.{HINT}\n"
    )


def full_card(request: float, capacity: float) -> str:
    """A card whose memory is really used: little free, little unused."""
    free = min(0.6 * request, 0.004 * capacity)
    used = capacity - free
    return message(request, capacity, free, used, used - 1.1 * GIB, 0.3 * GIB)


def traceback(*lines: tuple[str, str, str]) -> str:
    """(file, function, code) from the outside in."""
    body = "".join(
        f'  File "{file}", line {40 + 7 * i}, in {name}\n    {code}\n' for i, (file, name, code) in enumerate(lines)
    )
    return f"Traceback (most recent call last):\n{body}"
