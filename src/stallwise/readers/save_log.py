"""Lines of a log that tell of checkpoints: when a save began, how long its parts took."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Series, Source
from stallwise.readers._log_line import parse_line

FORMAT = "checkpoint lines"
_BEGIN = re.compile(
    r"sav(?:ing|e) (?:the )?(?:model |full |training |optimizer |sharded )*(?:checkpoint|state|weights)|writing checkpoint|"
    r"saving checkpoint|checkpoint save|start(?:ed|ing) (?:async )?checkpoint|begin(?:ning)? to save",
    re.IGNORECASE,
)
_TOOK = re.compile(
    r"(?:state dict|checkpoint|save|saving|saved|model|optimizer)[^.\n]{0,60}?(?:took|in|time[:=]|elapsed[:=]?) ?(\d+\.?\d*) ?"
    r"(secs?|seconds|s|ms|min|minutes)\b",
    re.IGNORECASE,
)
_SCALE = {"ms": 1e-3, "min": 60.0, "minutes": 60.0}
_HEAD = re.compile(rb"checkpoint|state dict|state_dict", re.IGNORECASE)


def recognises(name: str, head: bytes) -> bool:
    """Text that speaks of checkpoints being saved."""
    text = head[: 1 << 20]
    return b"\x00" not in text[:4096] and text[:2] != b'{"' and bool(_HEAD.search(text)) and (
        bool(_BEGIN.search(text.decode("utf-8", "replace"))) or b"state dict took" in text
    )  # fmt: skip


def read(artifact: Artifact) -> Iterator[Item]:
    """How often and how long."""
    begins: list[int] = []
    steps: list[float] = []
    last = float("nan")
    took_s = 0.0
    parts: list[float] = []
    for number, text in enumerate(artifact.lines(), 1):
        step = parse_line(text[:1000]).step
        last = step if step is not None else last
        if _BEGIN.search(text):
            steps.append(last)
            if parts:
                took_s, parts = max(took_s, sum(parts)), []
            begins.append(number)
        for match in _TOOK.finditer(text):
            parts.append(float(match[1]) * _SCALE.get(match[2].lower(), 1.0))
    took_s = max(took_s, sum(parts))
    if len(steps) > 1 and all(s == s for s in steps):
        where = Source(artifact.name, f"lines {begins[0]}-{begins[-1]}")
        yield Series(run.SAVES, np.array(steps), np.ones(len(steps)), where)
    if begins and _ends_badly(artifact.lines()[begins[-1] :]):
        yield Fact(run.DIED_IN_SAVE, 1.0, Source(artifact.name, f"line {begins[-1]}"))
    if begins:
        yield Fact(run.SAVES, float(len(begins)), Source(artifact.name, f"line {begins[0]}"), samples=len(begins))
    if took_s > 0:
        yield Fact(run.SAVE_TIME, took_s, Source(artifact.name), samples=max(len(begins), 1))


_ERROR = re.compile(r"error|time[d ]?out|watchdog|killed|exception|exit ?code|sigabrt|no such file", re.IGNORECASE)
_PROGRESS = re.compile(r"(?:loss|it/s|s/it|step|iteration)['\"]?\s*[:=]?\s*\d", re.IGNORECASE)


def _ends_badly(after: list[str]) -> bool:
    """An error after the last save, and no training step before it."""
    for text in after:
        if _ERROR.search(text):
            return True
        if _PROGRESS.search(text):
            return False
    return False
