"""The answer to "what if": the step as it is, and after each change, alone and together."""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.findings.finding import Gain


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
    order: tuple[str, ...]  # which pays first, each given those before it
    nothing: tuple[str, ...]  # asked for, and not there to be taken out
