"""Which colour class a kind of memory has, and which lies below which: the same in snapshots and in plans."""

from __future__ import annotations

from collections.abc import Iterable

# What stays through a step lies below what comes and goes.
KINDS = ("weights", "optimizer", "gradients", "gathered", "casts", "activations", "logits", "temporary", "workspace",
         "other", "unexplained", "slack", "outside the allocator")  # fmt: skip
SHADES = ("m1", "m4", "m3", "m9", "m7", "m2", "m6", "m5", "m8", "m10", "m8", "m10", "m9")


def shade_of(kind: str) -> str:
    """Its class."""
    return dict(zip(KINDS, SHADES, strict=True)).get(kind, "m10")


def in_order(kinds: Iterable[str]) -> list[str]:
    """The lowest first."""
    return sorted(kinds, key=lambda kind: KINDS.index(kind) if kind in KINDS else len(KINDS))
