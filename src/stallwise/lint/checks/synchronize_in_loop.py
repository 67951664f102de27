"""An explicit device synchronisation in every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stallwise.lint.source import Source, callee

CAUSE = "host-sync"
FIX = "remove it; to time device work use events (stallwise.bench or stallwise.span)"
COST = "the host loses its lead every step"


NAMES = ("torch.cuda.synchronize", "cuda.synchronize", "torch.accelerator.synchronize", "torch.xpu.synchronize")


def check(source: Source) -> Iterator[tuple[ast.expr, str]]:
    """torch.cuda.synchronize() where it runs every step."""
    for call in source.calls:
        if callee(call) in NAMES and source.hot(call):
            yield call, "an explicit synchronize in the training loop stops launches every step"
