"""What a rail that is gone costs every exchange, where one is stated to be down."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.catalog import expected, stated
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Source
from stallwise.physics.costs.formulas import dead_rail


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Both ways to spread the traffic, by the formula that `plan formula dead-rail` prints."""
    down = evidence.get(stated.LINK_DOWN)
    if down is None or not down.number > 0:
        return
    lost, source = dead_rail.evaluate(), Source("computed", "of eight rails one gone")
    yield Fact(expected.RAIL_SPREAD, lost["spread_ratio"], source)
    yield Fact(expected.RAIL_PINNED, lost["pinned_ratio"], source)
