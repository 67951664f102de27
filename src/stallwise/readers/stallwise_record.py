"""Record files of our own recorder: stage times by step, marks, gauges, stacks of a hang."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import run, stages
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Note, Scope, Series, Source
from stallwise.readers._record_file import PARTS, STAGES, parse

FORMAT = "stallwise record"
EXCLUSIVE = True
FIRST_LINE = re.compile(rb'^\s*\{"k":"(run|step|gpu|mark)",')


def recognises(name: str, head: bytes) -> bool:
    """Our own lines begin with their kind."""
    return FIRST_LINE.match(head) is not None


def read(artifact: Artifact) -> Iterator[Item]:
    """One series per stage, and what the file says of its end."""
    record = parse(artifact.lines())
    source = Source(artifact.name)
    scope = Scope(rank=record.rank)
    if record.lost_lines:
        yield Note(f"{record.lost_lines} torn or foreign lines were left out", source)
    if len(record.step) == 0:
        yield Note("no step ever ended in this record", source)
        return
    ended, last_step = record.ended or "cut off", float(record.step[-1])
    record = record.steady()
    x = np.array(record.step, dtype=np.float64)
    yield Series(run.STEP_TIME, x, np.array(record.duration_s), source, scope)
    yield Fact(stages.ON_DEVICE, float(record.on_device), source, scope)
    for name in (*STAGES, *PARTS):
        values = record.stage(name) if name not in ("gc",) else np.array([s.get(name, 0.0) for s in record.host_s])
        if values.any():
            yield Series(stages.STAGE_OF[name], x, values, source, scope)
    yield Series(stages.SIDE, x, record.side(), source, scope)
    yield Fact(stages.ENDED, ended, source, scope)
    yield Fact(stages.LAST_STEP, last_step, source, scope)
    for step, _, silence_s, text in record.stacks:
        at = Scope(rank=record.rank, step=step)
        yield Fact(stages.HANG_SILENCE, silence_s, source, at)
        yield Fact(stages.HANG_STACK, text, source, at)
