"""Ranks against categories: who waits, who is waited for."""

from __future__ import annotations

import numpy as np

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.evidence.ledger import Category, Ledger
from stallwise.render.blocks import Picture, Tab
from stallwise.render.colours import CLASS, guilty
from stallwise.render.phrases import place
from stallwise.render.pictures._heat import MOST_COLUMNS, heat
from stallwise.units import Unit, show

PLACE = 30
TAB = Tab.TIMELINE
MOST_LISTED = 64


def draw(diagnosis: Diagnosis) -> Picture | None:
    """A heat map when several ranks have a ledger."""
    by_rank: dict[int, Ledger] = {x.scope.rank: x for x in diagnosis.evidence.ledgers if x.scope.rank is not None}
    if len(by_rank) < 2:
        return None
    ranks = sorted(by_rank)
    categories = [a for a in Category if any(x.seconds.get(a, 0.0) > 0 for x in by_rank.values())]
    values = np.array([[by_rank[r].seconds.get(a, 0.0) for r in ranks] for a in categories])
    found, unit = guilty(diagnosis), by_rank[ranks[0]].unit
    named = found.scope.rank if found else None
    svg = heat(
        values, [a.value for a in categories], [str(r) for r in ranks], "rank", f"a {unit}",
        kinds=[CLASS[a.value] for a in categories], framed=ranks.index(named) if named in by_rank else -1,
    )  # fmt: skip
    shared = "; a cell is the worst of several ranks" if len(ranks) > MOST_COLUMNS else ""
    framed = f" Framed: rank {named}." if named in by_rank else ""
    head = ("rank", *(a.value for a in categories))
    rows = [
        (str(r), *(show(x, Unit.SECOND) for x in column)) for r, column in zip(ranks, values.T.tolist(), strict=True)
    ]
    return Picture(
        "ranks", f"{len(ranks)} ranks, category by category", svg,
        f"Seconds a {unit}; darker is more, each row on its own scale{shared}.{framed}",
        place(by_rank[ranks[0]].source), (), (head, *rows[:MOST_LISTED]),
    )  # fmt: skip
