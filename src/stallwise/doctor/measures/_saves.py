"""Checkpoints by their traffic: a burst of copies to the host in some steps, then silence while the file is written."""

from __future__ import annotations

import numpy as np

from stallwise.doctor.measures._purpose import Purposes
from stallwise.doctor.measures._spans import NOTHING, Spans
from stallwise.doctor.measures._trace_view import TraceView
from stallwise.doctor.measures._windows import Windows

MIN_COPIES = 8  # a state dict has one tensor per parameter; a metric or an output comes as one or two
MIN_BYTES = 32e6  # weights of any model worth training; far above logged scalars and predictions
RETURNED = 0.2  # offloading brings the bytes back in the same step, a checkpoint does not
LEAD_IN_S = 5e-3  # between the end of the silence and the first copy of the burst
OCCASIONAL = 0.5  # of the steps at most: what happens in every step is part of the step


def find_saves(view: TraceView, windows: Windows, purposes: Purposes, silent: Spans) -> Spans:
    """From the first copy of the burst to the end of the silence after it."""
    size = np.nan_to_num(view.timeline.size_bytes[view.work])
    out = purposes.to_host
    back = purposes.crosses_bus & ~out
    if not out.any():
        return NOTHING
    edges = windows.device
    step = np.searchsorted(edges, view.start, side="right") - 1
    inside = (step >= 0) & (step < len(windows))
    count = np.bincount(step[inside & out], minlength=len(windows))
    to_host = np.bincount(step[inside & out], weights=size[inside & out], minlength=len(windows))
    to_device = np.bincount(step[inside & back], weights=size[inside & back], minlength=len(windows))
    saving = (count >= MIN_COPIES) & (to_host >= MIN_BYTES) & (to_device <= RETURNED * to_host)
    if not saving.any() or (len(windows) > 1 and saving.mean() > OCCASIONAL):
        return NOTHING
    starts, ends = [], []
    for i in np.flatnonzero(saving).tolist():
        mine = inside & out & (step == i)
        first, last = float(view.start[mine].min()), float(view.end[mine].max())
        after = (silent.end > last) & (silent.start < edges[i + 1])
        # Gathering the state is silent too: the pause that ends where the copies begin belongs to the save.
        lead_in = (np.abs(silent.end - first) < LEAD_IN_S) & (silent.start >= edges[i])
        starts.append(float(silent.start[lead_in].min(initial=first)))
        ends.append(min(float(silent.end[after].max(initial=last)), float(edges[i + 1])))
    return Spans.of(starts, ends)
