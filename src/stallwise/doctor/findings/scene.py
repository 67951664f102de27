"""One step of one rank that a report shows, and which of its boxes prove which finding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stallwise.evidence.fact import Table

TIMELINE = "timeline"  # the kind of table that holds boxes of a step


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """Boxes of one step, as the measure of timelines chose them."""

    table: Table
    proves: Mapping[int, tuple[int, ...]] = field(
        default_factory=dict
    )  # place of a finding -> rows of the table, best first
