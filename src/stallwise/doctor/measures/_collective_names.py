"""What collectives are called: by profilers, libraries and kernels, over the years."""

from __future__ import annotations

import re
from functools import lru_cache

_OPS = (
    ("all-reduce", r"all_?reduce|cross_device_reduce|quick_reduce|one_?shot|two_?shot|custom_ar"),
    ("all-gather", r"all_?gather"),
    ("reduce-scatter", r"reduce_?scatter"),
    ("all-to-all", r"all_?to_?all|dispatch|combine"),
    ("barrier", r"barrier"),
    ("broadcast", r"broadcast"),
    ("send-recv", r"send_?recv|sendrecv"),
    ("send", r"(^|[:_ ])i?send($|[^a-z])"),
    ("recv", r"(^|[:_ ])i?recv($|[^a-z])"),
    ("gather", r"gather"),
    ("scatter", r"scatter"),
    ("reduce", r"(^|[^a-z])_?reduce"),
)
_PATTERNS = tuple((op, re.compile(pattern, re.IGNORECASE)) for op, pattern in _OPS)

HOST_RANGE = re.compile(r"^(nccl|rccl|gloo|mpi|ucc|xccl|hccl|mccl):", re.IGNORECASE)

# Every rank must have arrived before any can leave, so all end together.
TOGETHER = frozenset({"all-reduce", "all-gather", "reduce-scatter", "all-to-all", "barrier"})
HAND_OFFS = frozenset({"send", "recv", "send-recv"})
REDUCTIONS = frozenset({"all-reduce", "reduce-scatter", "all-gather"})

_DTYPES = (
    (8, r"double|long|int64|complex64|f64"),
    (1, r"byte|char|bool|int8|uint8|float8|fp8|e4m3|e5m2"),
    (2, r"half|bfloat16|float16|short|int16|bf16|fp16"),
    (4, r"float|int|uint32|fp32"),
)
_WIDTHS = tuple((width, re.compile(pattern, re.IGNORECASE)) for width, pattern in _DTYPES)


@lru_cache(maxsize=4096)
def op_of(text: str) -> str:
    """The operation a name tells; empty when it tells none."""
    for op, pattern in _PATTERNS:
        if pattern.search(text):
            return op
    return ""


@lru_cache(maxsize=256)
def element_bytes(dtype: str) -> int:
    """Width of one element; 0 when the name says nothing."""
    for width, pattern in _WIDTHS:
        if pattern.search(dtype):
            return width
    return 0
