"""Activation checkpointing saves and restores random state for blocks without randomness."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stallwise.lint.source import Source, callee, keyword

CAUSE = "recompute-unneeded"
FIX = "preserve_rng_state=False"
COST = "a host round trip for the generator state in every checkpointed block, forward and backward"


def check(source: Source) -> Iterator[tuple[ast.expr, str]]:
    """checkpoint(...) with the default preserve_rng_state in a file without dropout."""
    text = "\n".join(source.lines).lower()
    if "dropout" in text or "bernoulli" in text or "rand_like" in text:
        return
    for call in source.calls:
        name = callee(call).rsplit(".", 1)[-1]
        if name in ("checkpoint", "checkpoint_sequential") and _imported(source):
            if keyword(call, "preserve_rng_state") is None and not any(k.arg is None for k in call.keywords):
                yield call, "checkpoint() keeps random state although nothing here is random"


def _imported(source: Source) -> bool:
    return any("torch.utils.checkpoint" in line or "utils import checkpoint" in line for line in source.lines)
