"""A stretch of usual steps with the Python lines that were sampled in it, where no trace shows a step from inside.

A job that records itself has stacks and no profiler's window. A sample stands for the time to the next one, as far as samples
usually lie apart; frames that stay under the same callers are one box.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures.step_timeline import EVERY, KIND, LONGEST_NAME, WORKS
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Source, Table
from stallwise.evidence.ledger import Category
from stallwise.evidence.timeline import NO_ID

ORDER = 5  # after the steps of traces
STACKS = "sampled stacks"
WANTED_SAMPLES = 150  # in a stretch: enough to see what repeats
FEWEST_SAMPLES = 10
MOST_STEPS = 60
LONGEST_OF_USUAL = 3.0  # a sample stands for no more than so many usual distances: the sampler may have been held up
STEP_TRACK, LINE_TRACK = 1, 2

Box = tuple[int, int, float, float, str]  # track, depth, begin, end, name


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """One stretch for each rank, where no trace shows any."""
    if not evidence.table(KIND):
        for table in evidence.table(STACKS):
            yield from _stretch(table)


def _stretch(table: Table) -> Iterator[Item]:
    steps = table.meta["steps"]
    begin_s, end_s = (np.array([step[i] for step in steps]) for i in (1, 2))
    time_s = table.columns["time_s"]
    inside = np.searchsorted(time_s, end_s) - np.searchsorted(time_s, begin_s)
    each = float(inside.mean())
    if not each:
        return
    count = min(max(int(np.ceil(WANTED_SAMPLES / each)), 1), MOST_STEPS, len(steps))
    runs = np.lib.stride_tricks.sliding_window_view(inside, count).sum(axis=1)
    lengths = end_s[count - 1 :] - begin_s[: len(end_s) - count + 1]
    # Of those with as many samples as is usual, the stretch of the usual length.
    away = np.where(runs >= np.median(runs), np.abs(lengths - np.median(lengths)), np.inf)
    first = int(np.argmin(away))
    if runs[first] < FEWEST_SAMPLES:
        return
    lo, hi = float(begin_s[first]), float(end_s[first + count - 1])
    chosen = steps[first : first + count]
    boxes = [(STEP_TRACK, 0, max(a - lo, 0.0), b - lo, f"step {n}") for n, a, b in chosen]
    boxes += _frames(table, lo, hi)
    yield _as_timeline(table, boxes, f"steps {chosen[0][0]}-{chosen[-1][0]}", hi - lo)


def _frames(table: Table, lo: float, hi: float) -> list[Box]:
    time_s, stack = table.columns["time_s"], table.columns["stack"]
    at = np.flatnonzero((time_s >= lo) & (time_s < hi))
    moments = time_s[at]
    gaps = np.diff(moments, append=hi)
    lasts = np.minimum(gaps, LONGEST_OF_USUAL * float(np.median(gaps)))
    found: list[Box] = []
    open_frames: list[tuple[str, float]] = []

    def close(keep: int, end: float) -> None:
        while len(open_frames) > keep:
            name, since = open_frames.pop()
            found.append((LINE_TRACK, len(open_frames), since - lo, end - lo, name))

    ended = lo
    for t, code, length in zip(moments.tolist(), stack[at].tolist(), lasts.tolist(), strict=True):
        lines = list(reversed(table.meta["lines"][code]))
        if t > ended:  # a hole in the samples: nothing is known of it
            close(0, ended)
        same = 0
        while same < min(len(lines), len(open_frames)) and open_frames[same][0] == lines[same]:
            same += 1
        close(same, t)
        open_frames += [(line, t) for line in lines[same:]]
        ended = t + length
    close(0, ended)
    return found


def _as_timeline(table: Table, boxes: list[Box], label: str, length_s: float) -> Table:
    """The same columns as a step of a trace has."""
    boxes = sorted(boxes, key=lambda box: (box[0], box[1], box[2]))
    names = list(dict.fromkeys(box[4][:LONGEST_NAME] for box in boxes))
    code = {name: n for n, name in enumerate(names)}
    start, end = (np.array([box[i] for box in boxes]) for i in (2, 3))

    def whole(values: list[int]) -> NDArray[np.int32]:
        return np.array(values, np.int32)

    nothing = np.full(len(boxes), NO_ID, np.int32)
    columns = {
        "version": np.full(len(boxes), EVERY, np.int32), "track": whole([box[0] for box in boxes]),
        "depth": whole([box[1] for box in boxes]), "start_s": start, "end_s": end,
        "name": whole([code[box[4][:LONGEST_NAME]] for box in boxes]), "operator": nothing, "account": nothing,
        "work": nothing, "count": np.ones(len(boxes), np.int32), "busy_s": end - start, "idle_s": np.zeros(len(boxes)),
        "correlation": nothing.astype(np.int64), "facts": nothing,
    }  # fmt: skip
    meta = {
        "which": "sampled", "step": label, "unit": "stretch", "length_s": length_s, "begin_s": 0.0, "names": names,
        "facts": [], "accounts": [a.value for a in Category], "works": WORKS,
        "tracks": [["accounts", "where the time goes"], ["thread", "steps"], ["python", "training thread, sampled"]],
        "versions": [{"word": "as recorded", "meaning": "stacks sampled without a profiler", "length_s": length_s}],
        "path": {}, "events": len(boxes), "alone": len(boxes), "merged": 0, "blocks": 0, "left_out": [],
    }  # fmt: skip
    return Table(KIND, columns, Source(table.source.file, label), table.scope, meta)
