"""Attention: how much time goes into scores that are written to memory."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.doctor.measures._report import step_fact
from stallwise.doctor.measures._score_traffic import score_gemms, score_traffic
from stallwise.doctor.measures._step_index import step_index
from stallwise.doctor.measures._vocabulary import Work
from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Item
from stallwise.evidence.timeline import Timeline


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """Seconds a step in materialised scores and in the products around them; copies that change layout elsewhere."""
    index = step_index(timeline)
    if not len(index.view):
        return
    scores = score_traffic(index)
    duration = index.view.duration
    yield step_fact(index, catalog.SCORES_TIME, float(duration[scores].sum()) / index.steps)
    yield step_fact(index, catalog.SCORES_GEMM_TIME, float(duration[score_gemms(index)].sum()) / index.steps)
    inside_device = ~index.purposes.crosses_bus & ~index.view.is_kernel & (duration > 2e-6)
    layout = index.inside & ~scores & ((index.purposes.work == Work.LAYOUT) | inside_device)
    yield step_fact(index, catalog.LAYOUT_TIME, float(duration[layout].sum()) / index.steps)
