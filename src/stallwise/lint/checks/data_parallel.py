"""DataParallel copies the model to every GPU in every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stallwise.lint.source import Source, callee

CAUSE = "per-gpu-batch-too-small"
FIX = "DistributedDataParallel, one process a GPU"
COST = "weights travel to every GPU and outputs to one, every step, driven by one Python thread"


def check(source: Source) -> Iterator[tuple[ast.expr, str]]:
    """nn.DataParallel(...)."""
    for call in source.calls:
        if callee(call).rsplit(".", 1)[-1] == "DataParallel":
            yield call, "DataParallel drives all GPUs from one thread and copies weights every step"
