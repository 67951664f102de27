"""The operators that take most: time of the device work they launch themselves, and the host's own time in them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.doctor.measures._by_name import by_name
from stallwise.doctor.measures._step_book import book_of
from stallwise.doctor.measures.top_kernels import MOST_ASKED, floors, step_s
from stallwise.evidence.evidence import Item
from stallwise.evidence.timeline import Timeline
from stallwise.evidence.top import top_table


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """Ordered by the larger of both times, since either may hold the step up."""
    book = book_of(timeline)
    view, tree = book.view, book.view.tree
    if not len(tree):
        return
    start = timeline.start_s[tree.row]
    mine = (start >= book.windows.host[0]) & (start < book.windows.host[-1])
    own = tree.without_callees(timeline.duration_s[tree.row])
    launched = np.flatnonzero(book.inside & (view.operator >= 0))
    device = np.bincount(view.operator[launched], weights=view.duration[launched], minlength=len(tree))
    code = timeline.name[tree.row].astype(np.int64)
    found = by_name(code[mine], timeline.duration_s[tree.row][mine], weight=np.maximum(own, device)[mine])
    floor, seconds = floors(book, launched[:MOST_ASKED])
    known = np.isfinite(floor) & (seconds > 0)
    by_operator = code[view.operator[launched[:MOST_ASKED]]][known]
    least, taken = (found.sums(by_operator, values[known]) for values in (floor, seconds))
    host, busy = found.sums(code[mine], own[mine]) / book.steps, found.sums(code[mine], device[mine]) / book.steps
    columns = {
        "name": np.array([timeline.names[c] for c in found.code.tolist()], dtype=object),
        "time_s": busy,
        "share": (busy if len(view) else host) / step_s(book),
        "host_s": host,
        "count": found.count / book.steps,
        "median_s": found.median,
        "roof_share": np.minimum(np.divide(least, taken, out=np.full(len(least), np.nan), where=taken > 0), 1.0),
    }
    yield top_table("operators", columns, book.source, timeline.scope, unit=book.windows.unit, left_out=found.left_out,
                    of_whole=float((device if len(view) else own)[mine].sum()) / book.steps / step_s(book))  # fmt: skip
