"""A stretch of a trace with something to say, for viewers of traces."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Slice:
    """One box on one of our own tracks; times are on the trace's own clock."""

    track: str
    name: str
    start_s: float
    length_s: float
    says: dict[str, str] = field(default_factory=dict)
