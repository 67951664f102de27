"""Training runs in fp32 with TF32 matrix products left off."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stallwise.lint.source import Source

CAUSE = "tensor-cores-unused"
FIX = 'torch.set_float32_matmul_precision("high"), or bf16 autocast'
COST = "fp32 GEMMs on CUDA cores: 67 against 495 TFLOP/s (TF32) and 989 (bf16) on an H100"


SETTINGS = (
    "set_float32_matmul_precision",
    "allow_tf32",
    "autocast",
    "bfloat16",
    "fp32_precision",
    "half",
    "float16",
    "bf16",
    "fp16",
)


def check(source: Source) -> Iterator[tuple[ast.stmt, str]]:
    """A CUDA training loop in a file that never mentions a lower precision."""
    text = "\n".join(source.lines)
    if not source.training_loops or "cuda" not in text or "backward" not in text:
        return
    if any(setting in text for setting in SETTINGS):
        return
    loop = source.training_loops[0]
    yield loop, "fp32 training with TF32 off: matrix products run on CUDA cores"
