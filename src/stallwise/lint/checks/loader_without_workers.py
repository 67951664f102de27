"""The loader builds batches in the training process."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stallwise.lint.source import Source, callee, is_constant, keyword

CAUSE = "input-starved"
FIX = "num_workers=4 or more, persistent_workers=True"
COST = "every batch is built while the device waits, unless it is hidden behind queued work"


def check(source: Source) -> Iterator[tuple[ast.expr, str]]:
    """DataLoader(...) with num_workers 0 or left out."""
    for call in source.calls:
        if callee(call).rsplit(".", 1)[-1] != "DataLoader" or any(k.arg is None for k in call.keywords):
            continue  # **options may hold anything
        workers = keyword(call, "num_workers")
        if len(call.args) >= 6:
            workers = call.args[5]
        if workers is None or is_constant(workers, 0):
            yield call, "DataLoader without workers: batches are built in the training process"
