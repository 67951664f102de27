"""The allocator's cache is emptied in every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stallwise.lint.source import Source, callee

CAUSE = "allocator-churn"
FIX = "remove it; the cache is what makes allocation cheap"
COST = "cudaFree synchronises the device, and every step allocates from the driver again (milliseconds)"


def check(source: Source) -> Iterator[tuple[ast.expr, str]]:
    """torch.cuda.empty_cache() where it runs every step."""
    for call in source.calls:
        if callee(call).endswith("empty_cache") and source.hot(call):
            yield call, "empty_cache() in the training loop: every step allocates from the driver again"
