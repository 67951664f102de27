"""Attention: how much time goes into scores that are written to memory."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.doctor.measures._report import said
from stallwise.doctor.measures._score_traffic import score_products, score_traffic
from stallwise.doctor.measures._step_book import book_of
from stallwise.doctor.measures._vocabulary import Work
from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Item
from stallwise.evidence.timeline import Timeline


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """Seconds a step in materialised scores and in the products around them; copies that change layout elsewhere."""
    book = book_of(timeline)
    if not len(book.view):
        return
    scores = score_traffic(book)
    duration = book.view.duration
    yield said(book, catalog.SCORES_TIME, float(duration[scores].sum()) / book.steps)
    yield said(book, catalog.SCORES_PRODUCT_TIME, float(duration[score_products(book)].sum()) / book.steps)
    inside_device = ~book.purposes.crosses_bus & ~book.view.is_kernel & (duration > 2e-6)
    layout = book.inside & ~scores & ((book.purposes.work == Work.LAYOUT) | inside_device)
    yield said(book, catalog.LAYOUT_TIME, float(duration[layout].sum()) / book.steps)
