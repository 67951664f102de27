"""Copies between host and device: how much, from what memory, and what they cost the step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.doctor.measures._report import step_fact
from stallwise.doctor.measures._step_index import step_index
from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Item
from stallwise.evidence.ledger import Category
from stallwise.evidence.timeline import Timeline

BULK_BYTES = 16e6  # a step that sends more than this to the host moves states or activations, not results


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """Facts about the bus."""
    index = step_index(timeline)
    view, purposes = index.view, index.purposes
    out = index.inside & purposes.to_host
    into = index.inside & purposes.crosses_bus & ~purposes.to_host
    if not (out.any() or into.any()):
        return
    size = np.nan_to_num(timeline.size_bytes[view.work])
    steps = index.steps
    yield step_fact(index, catalog.TO_DEVICE_BYTES, float(size[into].sum()) / steps)
    yield step_fact(index, catalog.TO_HOST_BYTES, float(size[out].sum()) / steps)
    yield step_fact(index, catalog.TO_DEVICE_TIME, float(view.duration[into].sum()) / steps)
    yield step_fact(index, catalog.TO_HOST_TIME, float(view.duration[out].sum()) / steps)
    if size[into].sum() > 0:
        yield step_fact(index, catalog.PAGEABLE_SHARE, float(size[into & purposes.pageable].sum() / size[into].sum()))
    step = np.clip(np.searchsorted(index.windows.device, view.start[out], side="right") - 1, 0, steps - 1)
    bulk = np.bincount(step, weights=size[out], minlength=steps) > BULK_BYTES
    yield step_fact(index, catalog.TO_HOST_STEPS, float(bulk.mean()))
    # Exposed copies, idle time inside the call, and idle time after the waits that such a call forces.
    yield step_fact(index, catalog.COPY_STALL, index.mean_s(index.categories[Category.COPY]))
