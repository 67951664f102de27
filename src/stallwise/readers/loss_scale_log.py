"""Lines in which a loss scaler says that it skips a step and lowers its scale: apex, DeepSpeed, fairseq, Megatron."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Series, Source

FORMAT = "loss scaler log"
_REDUCED = re.compile(
    r"(?:reducing (?:loss scale )?to|setting loss scale to|loss scale (?:reduced|decreased) to):?\s*([\d.e+-]+)", re.I
)
_MINIMUM = re.compile(r"loss scale already at minimum|minimum loss scale reached", re.I)
_WORDS = (
    b"reducing to", b"reducing loss scale", b"setting loss scale to", b"loss scale reduced", b"minimum loss scale",
    b"already at minimum",
)  # fmt: skip
MAX_BYTES = 256 << 20


def recognises(name: str, head: bytes) -> bool:
    """One of the wordings."""
    plain = head.lower()
    return b"loss scale" in plain and any(word in plain for word in _WORDS)


def read(artifact: Artifact) -> Iterator[Item]:
    """The scale after each skipped step, in order; a line of skipped steps counts them."""
    scales: list[float] = []
    first = last = 0
    for number, line in enumerate(artifact.text(MAX_BYTES).splitlines(), 1):
        if match := _REDUCED.search(line):
            try:
                scales.append(float(match[1].rstrip(".")))
            except ValueError:
                continue
            first, last = first or number, number
        elif _MINIMUM.search(line) and scales:
            scales.append(min(scales[-1], 0.5))
            last = number
    if not scales:
        return
    source = Source(artifact.name, f"lines {first}-{last}")
    if len(scales) > 1:
        yield Series(run.LOSS_SCALE, np.arange(len(scales), dtype=float), np.array(scales), source)
    yield Fact(run.SKIPPED_STEPS, float(len(scales)), source)
