"""Which number types the card's matrix units take, and how much slow matrix work no library call made."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.doctor.measures._report import step_fact
from stallwise.doctor.measures._step_index import step_index
from stallwise.doctor.measures._vocabulary import Work, matrix_precision
from stallwise.evidence.catalog import card, hardware, kernel
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact
from stallwise.evidence.timeline import Timeline
from stallwise.physics.specs.hardware import Gpu, find_gpu

TYPES = ("fp16", "bf16", "tf32", "fp8", "fp4", "int8")


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """Of the traced card, and of its slow matrix kernels."""
    index = step_index(timeline)
    view = index.view
    if not len(view):
        return
    if view.gpu is not None:
        yield step_fact(index, card.MATRIX_TYPES, _types(view.gpu))
    at = np.flatnonzero((index.purposes.work == Work.GEMM) & index.inside & view.is_kernel)
    rows = view.work[at]
    plain = np.zeros(len(timeline.names), bool)
    used = timeline.codes(rows)
    plain[used] = [matrix_precision(timeline.names[code]) in ("fp32", "") for code in used]
    slow = at[plain[timeline.name[rows]]]
    total = float(view.duration[slow].sum())
    if total > 0 and (view.operator >= 0).any():  # a trace of the device alone knows of no operator
        # Kernels of a replayed graph share one launch, which stands in no operator either.
        _, launch, together = np.unique(view.launch_row, return_inverse=True, return_counts=True)
        alone = (view.operator[slow] < 0) & ((together[launch] == 1) | (view.launch_row < 0))[slow]
        yield step_fact(index, card.HAND_WRITTEN_SHARE, float(view.duration[slow][alone].sum()) / total)


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Of the card that a sample, a profile or a person names."""
    if evidence.all(card.MATRIX_TYPES):
        return
    for quantity in (hardware.GPU_NAME, kernel.DEVICE):
        fact = evidence.get(quantity) or next(iter(evidence.all(quantity)), None)
        gpu = find_gpu(str(fact.value)) if fact is not None else None
        if fact is not None and gpu is not None:
            yield Fact(card.MATRIX_TYPES, _types(gpu), fact.source)
            return


def _types(gpu: Gpu) -> str:
    plain = gpu.peak_flop_per_s.get("fp32", 0.0)
    return " ".join(t for t in TYPES if gpu.peak_flop_per_s.get(t, 0.0) > plain)
