"""Iterations of a serving engine or a generation loop: decode (few rows, weights read once a token) or prefill."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from stallwise.doctor.measures._matrix_shapes import matrix_shapes
from stallwise.doctor.measures._report import step_fact
from stallwise.doctor.measures._step_index import StepIndex, step_index
from stallwise.doctor.measures._vocabulary import Work, few_rows
from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Item
from stallwise.evidence.timeline import Timeline

FEW_ROWS = 64  # far under the ridge of every card (150 to 300 rows in 16 bits): the weights' bytes decide
MOST = 0.7  # of the matrix time


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """What kind of iteration it is, and the time of matrix kernels with few rows."""
    index = step_index(timeline)
    if not len(index.view) or index.purposes.backward.total_s > 0:
        return
    at = np.flatnonzero((index.purposes.work == Work.GEMM) & index.inside & index.view.is_kernel)
    if not len(at):
        return
    total = float(index.view.duration[at].sum())
    kind = _from_marks(index)
    shapes = matrix_shapes(index, at)
    few = 0.0
    if shapes is not None and np.isfinite(shapes.rows).any():
        few = float(shapes.seconds[np.nan_to_num(shapes.rows, nan=1e9) <= FEW_ROWS].sum())
        if not kind:
            kind = "decode" if few > MOST * total else ""
    elif not kind:
        # Without shapes the library's choice of kernel tells: it takes narrow tiles only for few rows.
        names = timeline.names
        narrow = np.array([few_rows(names[c]) for c in timeline.name[index.view.work[at]].tolist()])
        few = float(index.view.duration[at][narrow].sum())
        kind = "decode" if few > MOST * total else ""
    if kind == "decode":
        few = max(few, total if index.windows.unit == "iteration" else few)
    if kind:
        yield step_fact(index, catalog.ITERATION_KIND, kind)
        yield step_fact(index, catalog.DECODE_WEIGHT_TIME, few / index.steps)
        attention = index.inside & index.view.is_kernel & (index.purposes.work == Work.ATTENTION)
        yield step_fact(index, catalog.DECODE_KV_TIME, float(index.view.duration[attention].sum()) / index.steps)


def _from_marks(index: StepIndex) -> str:
    """vLLM and SGLang write the batch into the name: requests in prefill (context) and in decode (generation)."""
    if index.windows.unit != "iteration" or not index.windows.labels:
        return ""
    kinds = {_kind(label) for label in index.windows.labels}
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
