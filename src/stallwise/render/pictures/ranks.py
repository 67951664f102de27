"""Ranks against accounts: who waits, who is waited for."""

from __future__ import annotations

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.evidence.ledger import Category, Ledger
from stallwise.render.blocks import Picture, Tab
from stallwise.render.colours import CLASS, guilty
from stallwise.render.phrases import place
from stallwise.render.svg import WIDTH, box, picture, text
from stallwise.units import Unit, show

PLACE = 30
TAB = Tab.TIMELINE
LEFT, ROW, TOP = 170.0, 22.0, 26.0
MOST_CELLS = 160  # columns: more ranks share a cell, which then shows the worst of them
FAINTEST = 0.08


def draw(diagnosis: Diagnosis) -> Picture | None:
    """A heat map when several ranks have a ledger."""
    by_rank: dict[int, Ledger] = {x.scope.rank: x for x in diagnosis.evidence.ledgers if x.scope.rank is not None}
    if len(by_rank) < 2:
        return None
    ranks = sorted(by_rank)
    categories = [a for a in Category if any(x.seconds.get(a, 0.0) > 0 for x in by_rank.values())]
    per_cell = -(-len(ranks) // MOST_CELLS)
    cells = [ranks[i : i + per_cell] for i in range(0, len(ranks), per_cell)]
    found = guilty(diagnosis)
    named = found.scope.rank if found else None
    width = (WIDTH - LEFT - 8) / len(cells)
    parts = []
    every = max(1, len(cells) // 16)
    for i, members in enumerate(cells):
        x = LEFT + i * width
        if i % every == 0:
            parts.append(text(x + width / 2, TOP - 8, str(members[0]), "axis", "middle"))
        if named in members:
            parts.append(box(x, TOP - 3, width, ROW * len(categories) + 4, "frame"))
    for row, category in enumerate(categories):
        y = TOP + row * ROW
        parts.append(text(LEFT - 8, y + 15, category.value, "t", "end"))
        most = max(x.seconds.get(category, 0.0) for x in by_rank.values())
        for i, members in enumerate(cells):
            worst = max(members, key=lambda r: by_rank[r].seconds.get(category, 0.0))
            seconds = by_rank[worst].seconds.get(category, 0.0)
            shade = f' fill-opacity="{max(FAINTEST, seconds / most if most else 0.0):.2f}"'
            who = f"rank {worst}" if len(members) == 1 else f"rank {worst}, worst of {members[0]}-{members[-1]}"
            title = f"{who}: {category.value} {show(seconds, Unit.SECOND)}"
            parts.append(box(LEFT + i * width, y, width - 0.5, ROW - 3, CLASS[category.value], title, shade))
    if named is not None:
        parts.append(text(LEFT, TOP + len(categories) * ROW + 16, f"framed: rank {named}", "t"))
    unit = by_rank[ranks[0]].unit
    shared = f"; each cell is the worst of {per_cell} ranks" if per_cell > 1 else ""
    head = ("rank", *(a.value for a in categories))
    rows = [(str(r), *(show(by_rank[r].seconds.get(a, 0.0), Unit.SECOND) for a in categories)) for r in ranks[:64]]
    return Picture(
        "ranks",
        f"{len(ranks)} ranks, category by category",
        picture(
            parts, TOP + len(categories) * ROW + 26, f"Heat map of {len(ranks)} ranks by {len(categories)} categories"
        ),
        f"Seconds a {unit}; darker is more, each row on its own scale{shared}.",
        place(by_rank[ranks[0]].source),
        (),
        (head, *rows),
    )
