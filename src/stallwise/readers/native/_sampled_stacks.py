"""The sampled stacks of a record along time, beside the borders of its steps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.evidence.fact import Scope, Source, Table
from stallwise.readers.records.rank_record import RankRecord

KIND = "sampled stacks"
MOST_SAMPLES = 50_000


def sampled_stacks(record: RankRecord, source: Source, scope: Scope) -> Iterator[Table]:
    """A row a sample; `lines` of the stacks innermost first, `steps` as (number, begin, end) on the samples' clock."""
    looked = [s for s in record.samples[:MOST_SAMPLES] if record.frames.get(s.stack)]
    if not looked or not record.step:
        return
    codes = {stack: code for code, stack in enumerate(dict.fromkeys(s.stack for s in looked))}
    zero_s = min(looked[0].time_s, record.time_s[0] - record.duration_s[0])
    steps = [
        (n, end_s - took_s - zero_s, end_s - zero_s)
        for n, end_s, took_s in zip(record.step, record.time_s, record.duration_s, strict=True)
    ]
    columns = {
        "time_s": np.array([s.time_s - zero_s for s in looked]),
        "stack": np.array([codes[s.stack] for s in looked], np.int64),
    }
    yield Table(
        KIND, columns, source, scope, {"lines": [list(record.frames[stack]) for stack in codes], "steps": steps}
    )
