"""Lines of a log that tell of evaluations: at which steps they ran."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Series, Source
from stallwise.readers._log_line import parse_line

FORMAT = "evaluation lines"
_BEGIN = re.compile(
    r"running (?:evaluation|validation)|start(?:ing)? (?:evaluation|validation)|\bevaluating\b|\*+ eval|validation loss at",
    re.I,
)


def recognises(name: str, head: bytes) -> bool:
    """Text that says that it evaluates."""
    return b"\x00" not in head[:4096] and bool(_BEGIN.search(head[: 1 << 20].decode("utf-8", "replace")))


def read(artifact: Artifact) -> Iterator[Item]:
    """How many, and at which steps."""
    steps: list[float] = []
    last = float("nan")
    for text in artifact.lines():
        step = parse_line(text[:1000]).step
        last = step if step is not None else last
        if _BEGIN.search(text):
            steps.append(last)
    source = Source(artifact.name)
    if steps:
        yield Fact(run.EVALS, float(len(steps)), source)
    if len(steps) > 1 and all(s == s for s in steps):
        yield Series(run.EVALS, np.array(steps), np.ones(len(steps)), source)
