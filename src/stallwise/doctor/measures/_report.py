"""How a measure of steps states what it found: with the rank, the steps and their number as provenance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._step_index import StepIndex
from stallwise.evidence.fact import Fact, Series, Source
from stallwise.evidence.quantity import Quantity


def step_fact(
    index: StepIndex,
    quantity: Quantity,
    value: float | str,
    *,
    where: str = "",
    low: float | None = None,
    high: float | None = None,
    note: str = "",
) -> Fact:
    """A fact about the mean step of this rank."""
    source = Source(index.timeline.source.file, where or index.windows.where)
    return Fact(quantity, value, source, index.timeline.scope, index.steps, low, high, note)


def by_step(index: StepIndex, quantity: Quantity, values: NDArray[np.float64]) -> Series:
    """A value for each step of this rank."""
    x = np.arange(len(values), dtype=np.float64)
    return Series(quantity, x, np.asarray(values, np.float64), index.source, index.timeline.scope)
