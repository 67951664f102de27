"""The answer to "what if": the step as it is, and after each change, alone and together."""

from __future__ import annotations

from dataclasses import dataclass, field

from stallwise.doctor.findings.finding import Gain


@dataclass(frozen=True, slots=True)
class Tried:
    """One change, or several at once, replayed."""

    changes: tuple[str, ...]
    meaning: str
    gain: Gain
    step_s: float


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Steps of one trace, replayed."""

    source: str
    steps: int
    unit: str
    traced_step_s: float
    clean_step_s: float
    clean_low_s: float
    clean_high_s: float
    alone: tuple[Tried, ...]  # best first
    together: Tried | None
    order: tuple[str, ...]  # which pays first, each given those before it; without those that win nothing
    nothing: dict[str, str] = field(default_factory=dict)  # asked for and not there to be taken out: why not
    as_traced: str = ""  # why the profiler's cost could not be taken off; empty where it was
    ranks: int = 1  # traces of the run; one of them is replayed
    remarks: tuple[str, ...] = ()
