"""What a way of running a layer costs the host: measured on one H200's host, as ratios to plain eager calls.

The ratios carry over to other hosts better than the times do: both sides are the same calls on the same machine.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path


@cache
def _table() -> dict[str, tuple[float, float]]:
    text = (Path(__file__).parent / "measured" / "operators_h200_host.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return {r["what"]: (float(r["forward_us"]), float(r["backward_us"] or 0.0)) for r in rows}


def autocast_ratio() -> float:
    """Host time of a layer's forward and backward pass under autocast, over the same without."""
    return sum(_table()["autocast"]) / sum(_table()["eager"])


def checkpoint_beside_ratio() -> float:
    """What activation checkpointing adds to the forward pass over what it adds to the backward pass, where it shows: states
    that are kept, hooks around every saved tensor."""
    plain, twice = _table()["eager"], _table()["eager_checkpoint"]
    return (twice[0] - plain[0]) / (twice[1] - plain[1])
