"""What the device's time is spent on, by purpose."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.doctor.measures._report import step_fact
from stallwise.doctor.measures._step_index import step_index
from stallwise.doctor.measures._vocabulary import Work
from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Item
from stallwise.evidence.timeline import Timeline

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
    index = step_index(timeline)
    if not len(index.view):
        return
    kernels = index.inside & index.view.is_kernel
    work, duration = index.purposes.work[kernels], index.view.duration[kernels]
    seconds = np.bincount(work, weights=duration, minlength=len(Work)) / index.steps
    for quantity, works in TIMES.items():
        yield step_fact(index, quantity, float(sum(seconds[w] for w in works)))
