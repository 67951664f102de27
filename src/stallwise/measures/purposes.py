"""What the device's time is spent on, by purpose, with a table of the heaviest kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Table
from stallwise.evidence.timeline import Timeline
from stallwise.measures._report import said
from stallwise.measures._step_book import StepBook, book_of
from stallwise.measures._vocabulary import Work

TOP_KERNELS = 40
POINTWISE = (Work.ELEMENTWISE, Work.CAST, Work.LAYOUT)
MOVES_DATA = (*POINTWISE, Work.NORM, Work.SOFTMAX, Work.LOSS, Work.INDEX, Work.OPTIMIZER, Work.FUSED, Work.REDUCTION)
TIMES = {
    catalog.GEMM_TIME: (Work.GEMM,),
    catalog.CONV_TIME: (Work.CONV,),
    catalog.ATTENTION_TIME: (Work.ATTENTION,),
    catalog.POINTWISE_TIME: POINTWISE,
    catalog.NORM_TIME: (Work.NORM,),
    catalog.OPTIMIZER_TIME: (Work.OPTIMIZER,),
    catalog.COMMUNICATION_TIME: (Work.COMMUNICATION,),
    catalog.FUSED_TIME: (Work.FUSED,),
    catalog.MEMORY_BOUND_TIME: MOVES_DATA,
}


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """Seconds a step by purpose."""
    book = book_of(timeline)
    if not len(book.view):
        return
    kernels = book.inside & book.view.is_kernel
    work, duration = book.purposes.work[kernels], book.view.duration[kernels]
    seconds = np.bincount(work, weights=duration, minlength=len(Work)) / book.steps
    for quantity, works in TIMES.items():
        yield said(book, quantity, float(sum(seconds[w] for w in works)))
    yield _heaviest(book)


def _heaviest(book: StepBook) -> Table:
    """The kernels that take most time, with what they are for."""
    t, view = book.timeline, book.view
    at = np.flatnonzero(book.inside)
    code = t.name[view.work[at]]
    total = np.bincount(code, weights=view.duration[at], minlength=len(t.names))
    count = np.bincount(code, minlength=len(t.names))
    top = np.argsort(-total, kind="stable")[:TOP_KERNELS]
    top = top[total[top] > 0]
    purpose = np.zeros(len(t.names), np.uint8)
    purpose[code] = book.purposes.work[at]
    columns = {
        "name": np.array([t.names[c] for c in top], dtype=object),
        "purpose": np.array([Work(int(purpose[c])).name.lower() for c in top], dtype=object),
        "seconds": total[top] / book.steps,
        "count": count[top] / book.steps,
    }
    return Table("step kernels", columns, book.source, t.scope)
