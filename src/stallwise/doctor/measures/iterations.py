"""Iterations of a serving engine or a generation loop: decode (few rows, weights read once a token) or prefill."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from stallwise.doctor.measures._matrix_shapes import matrix_shapes
from stallwise.doctor.measures._report import said
from stallwise.doctor.measures._step_book import StepBook, book_of
from stallwise.doctor.measures._vocabulary import Work, few_rows
from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Item
from stallwise.evidence.timeline import Timeline

FEW_ROWS = 64  # far under the ridge of every card (150 to 300 rows in 16 bits): the weights' bytes decide
MOST = 0.7  # of the matrix time


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """What kind of iteration it is, and the time of matrix kernels with few rows."""
    book = book_of(timeline)
    if not len(book.view) or book.purposes.backward.total_s > 0:
        return
    at = np.flatnonzero((book.purposes.work == Work.GEMM) & book.inside & book.view.is_kernel)
    if not len(at):
        return
    total = float(book.view.duration[at].sum())
    kind = _from_marks(book)
    shapes = matrix_shapes(book, at)
    few = 0.0
    if shapes is not None and np.isfinite(shapes.rows).any():
        few = float(shapes.seconds[np.nan_to_num(shapes.rows, nan=1e9) <= FEW_ROWS].sum())
        if not kind:
            kind = "decode" if few > MOST * total else ""
    elif not kind:
        # Without shapes the library's choice of kernel tells: it takes narrow tiles only for few rows.
        names = timeline.names
        narrow = np.array([few_rows(names[c]) for c in timeline.name[book.view.work[at]].tolist()])
        few = float(book.view.duration[at][narrow].sum())
        kind = "decode" if few > MOST * total else ""
    if kind == "decode":
        few = max(few, total if book.windows.unit == "iteration" else few)
    if kind:
        yield said(book, catalog.ITERATION_KIND, kind)
        yield said(book, catalog.DECODE_WEIGHT_TIME, few / book.steps)
        attention = book.inside & book.view.is_kernel & (book.purposes.work == Work.ATTENTION)
        yield said(book, catalog.DECODE_KV_TIME, float(book.view.duration[attention].sum()) / book.steps)


def _from_marks(book: StepBook) -> str:
    """vLLM and SGLang write the batch into the name: requests in prefill (context) and in decode (generation)."""
    if book.windows.unit != "iteration" or not book.windows.labels:
        return ""
    kinds = {_kind(label) for label in book.windows.labels}
    return kinds.pop() if len(kinds) == 1 else "mixed"


def _kind(label: str) -> str:
    lower = label.lower()
    context = re.search(r"context_(\d+)", lower)
    generation = re.search(r"generation_(\d+)", lower)
    if context or generation:
        prefills, decodes = (int(m[1]) if m else 0 for m in (context, generation))
        return "mixed" if prefills and decodes else "prefill" if prefills else "decode"
    if "decode" in lower:
        return "decode"
    return "prefill" if "prefill" in lower or "extend" in lower else "mixed"
