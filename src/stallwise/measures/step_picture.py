"""One representative step as boxes, for pictures: the ledger along time, the streams, and what the host was doing.

The step whose length is nearest the median, and the slowest where it stands out. Neighbours too narrow to see are
merged, so that the table stays small whatever the trace holds; a merged box carries the name of its longest part.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Source, Table
from stallwise.evidence.ledger import Account
from stallwise.evidence.timeline import Kind, Timeline
from stallwise.measures._step_book import StepBook, book_of

KIND = "step picture"
COLUMNS = 480  # horizontal resolution: narrower neighbours are merged
MOST_STREAMS = 6
MOST_RANGES = 60  # host ranges kept, longest first
DEEPEST = 3
LEAST_SHARE = 0.004  # of the step: a shorter host range is not seen
STANDS_OUT = 1.5  # times the usual step: something happened in it that the usual one does not show
LEDGER_LANE = "where the time goes"


class _Boxes:
    """Rows in the making."""

    def __init__(self) -> None:
        self.lane: list[str] = []
        self.start: list[float] = []
        self.end: list[float] = []
        self.name: list[str] = []
        self.account: list[str] = []
        self.count: list[int] = []

    def add(self, lane: str, start: float, end: float, name: str, account: str = "", count: int = 1) -> None:
        self.lane.append(lane)
        self.start.append(start)
        self.end.append(end)
        self.name.append(name)
        self.account.append(account)
        self.count.append(count)


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """The picture of one rank's usual step."""
    book = book_of(timeline)
    if not len(book.view):
        return
    lengths = np.diff(book.windows.device)
    usual = int(np.argmin(np.abs(lengths - np.median(lengths))))
    slowest = int(np.argmax(lengths))
    yield from _picture(book, usual, "usual")
    if lengths[slowest] > STANDS_OUT * lengths[usual]:
        yield from _picture(book, slowest, "slowest")


def _picture(book: StepBook, at: int, which: str) -> Iterator[Item]:
    timeline = book.timeline
    lo, hi = float(book.windows.device[at]), float(book.windows.device[at + 1])
    if not hi > lo:
        return
    boxes = _Boxes()
    _ledger(book, lo, hi, boxes)
    _streams(book, lo, hi, boxes)
    _host(book, lo, hi, boxes)
    label = book.windows.labels[at] if at < len(book.windows.labels) else f"{book.windows.unit} {at}"
    columns: dict[str, NDArray[np.generic]] = {
        "lane": np.array(boxes.lane, dtype=object),
        "start_s": np.array(boxes.start) - lo,
        "end_s": np.array(boxes.end) - lo,
        "name": np.array(boxes.name, dtype=object),
        "account": np.array(boxes.account, dtype=object),
        "count": np.array(boxes.count, dtype=np.int64),
    }
    meta = {
        "which": which,
        "step": label,
        "length_s": hi - lo,
        "unit": book.windows.unit,
        "merged_below_s": (hi - lo) / COLUMNS,
    }
    yield Table(KIND, columns, Source(timeline.source.file, label), timeline.scope, meta)


def _ledger(book: StepBook, lo: float, hi: float, boxes: _Boxes) -> None:
    """Every moment in its account, in order of time; slivers go with their left neighbour."""
    starts, ends, codes = [], [], []
    accounts = list(Account)
    for number, account in enumerate(accounts):
        spans = book.accounts.get(account)
        if spans is None:
            continue
        keep = (spans.end > lo) & (spans.start < hi)
        starts.append(np.maximum(spans.start[keep], lo))
        ends.append(np.minimum(spans.end[keep], hi))
        codes.append(np.full(int(keep.sum()), number))
    start, end, code = np.concatenate(starts), np.concatenate(ends), np.concatenate(codes)
    order = np.argsort(start, kind="stable")
    start, end, code = start[order], end[order], code[order]
    cell = np.minimum(((start - lo) / (hi - lo) * COLUMNS).astype(np.int64), COLUMNS - 1)
    # One winner per column: the account that holds most of it, spread over the columns that a span covers whole.
    last = np.minimum(((end - lo) / (hi - lo) * COLUMNS).astype(np.int64), COLUMNS - 1)
    share = np.zeros((len(accounts), COLUMNS))
    np.add.at(share, (code, cell), end - start)
    for a, b, which in zip(cell.tolist(), last.tolist(), code.tolist(), strict=True):
        if b > a:
            share[which, a + 1 : b + 1] += hi - lo
    winner = np.argmax(share, axis=0)
    edges = np.flatnonzero(np.concatenate(([True], winner[1:] != winner[:-1], [True])))
    width = (hi - lo) / COLUMNS
    for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        word = accounts[int(winner[a])].value
        boxes.add(LEDGER_LANE, lo + a * width, lo + b * width, word, word)


def _streams(book: StepBook, lo: float, hi: float, boxes: _Boxes) -> None:
    view, t = book.view, book.timeline
    rows = np.flatnonzero((view.start < hi) & (view.end > lo))
    lane = t.lane[view.work[rows]]
    busy = np.bincount(lane, weights=view.duration[rows], minlength=len(t.lanes))
    for stream in [int(s) for s in np.argsort(-busy)[:MOST_STREAMS] if busy[s] > 0]:
        at = rows[lane == stream]
        kind = _kind(book, at)
        cell = ((view.start[at] - lo) / (hi - lo) * COLUMNS).astype(np.int64)
        wide = view.duration[at] >= (hi - lo) / COLUMNS
        changes = (np.diff(cell) != 0) | (np.diff(kind) != 0) | wide[1:] | wide[:-1]
        first = np.flatnonzero(np.concatenate(([True], changes)))
        start = np.maximum(view.start[at][first], lo)
        end = np.minimum(np.maximum.reduceat(view.end[at], first), hi)
        count = np.diff(np.append(first, len(at)))
        group = np.repeat(np.arange(len(first)), count)
        longest = np.lexsort((-view.duration[at], group))[first]
        label = f"stream {t.lanes[stream].thread}"
        for i in range(len(first)):
            name = t.text(int(view.work[at[longest[i]]]))
            word = _KINDS[int(kind[first[i]])].value
            boxes.add(label, float(start[i]), float(end[i]), name, word, int(count[i]))


_KINDS = (Account.COMPUTE, Account.COMMUNICATION, Account.COPY)


def _kind(book: StepBook, at: NDArray[np.intp]) -> NDArray[np.int64]:
    p = book.purposes
    return np.where(p.communication[at], 1, np.where(p.crosses_bus[at], 2, 0)).astype(np.int64)


def _host(book: StepBook, lo: float, hi: float, boxes: _Boxes) -> None:
    """Named ranges of the threads that launch work, nested as deep as can be read."""
    t, view = book.timeline, book.view
    rows = t.rows(Kind.ANNOTATION)
    start, end = t.start_s[rows], t.end_s[rows]
    keep = (start < hi) & (end > lo) & view.working_lanes[t.lane[rows]] & (end - start >= LEAST_SHARE * (hi - lo))
    rows = rows[keep]
    rows = np.sort(rows[np.argsort(-t.duration_s[rows], kind="stable")[:MOST_RANGES]])
    open_until: dict[int, list[float]] = {}
    for row in rows.tolist():
        begin, stop, lane = float(t.start_s[row]), float(t.end_s[row]), int(t.lane[row])
        stack = open_until.setdefault(lane, [])
        while stack and stack[-1] <= begin:
            stack.pop()
        if len(stack) < DEEPEST:
            thread = list(open_until).index(lane) + 1
            inner = f", level {len(stack) + 1}" if stack else ""
            boxes.add(f"host thread {thread}{inner}", max(begin, lo), min(stop, hi), t.text(row))
        stack.append(stop)
