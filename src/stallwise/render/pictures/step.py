"""The timeline of one usual step, with the guilty part lit."""

from __future__ import annotations

from stallwise.evidence.fact import Table
from stallwise.findings.diagnosis import Diagnosis
from stallwise.findings.finding import Finding
from stallwise.render.phrases import place
from stallwise.render.pictures import Figure
from stallwise.render.pictures._accounts import CLASS, guilty
from stallwise.render.svg import WIDTH, box, line, picture, short, text, ticks
from stallwise.units import Unit, show

PLACE = 10
KIND = "step picture"
LEFT, ROW, GAP, TOP = 150.0, 20.0, 5.0, 22.0
PIXELS_PER_LETTER = 7.4
SHORTEST_LABEL = 6  # letters: less of a name says nothing
SHORTEST_NAME = 8  # letters: shorter kernel names occur in sentences by chance
SEEN_PART = 0.01  # of the step: shorter parts are left out of the table


def draw(diagnosis: Diagnosis) -> Figure | None:
    """The step of the rank that the first finding speaks of, else of the first rank."""
    found = guilty(diagnosis)
    tables = diagnosis.evidence.table(KIND)
    if not tables:
        return None
    mine = [t for t in tables if found and found.scope.rank is not None and t.scope.rank == found.scope.rank]
    table = max(mine or tables[:2], key=lambda t: _shows(t, found))
    length = float(table.meta["length_s"])
    parts = _drawn(table, length, found)
    lanes = list(dict.fromkeys(table.columns["lane"].tolist()))
    height = TOP + len(lanes) * (ROW + GAP) + 6
    lit = found.account.value if found and found.account else ""
    which = "the slowest" if table.meta.get("which") == "slowest" else f"the {table.meta['unit']} nearest the median"
    caption = f"{table.meta['step']}, {show(length, Unit.SECOND)}: {which}"
    if lit:
        caption += f"; lit: {lit}"
    if table.scope.rank is not None:
        caption += f"; rank {table.scope.rank}"
    caption += "."
    used = dict.fromkeys(a for a in table.columns["account"].tolist() if a)
    label = f"Timeline of one {table.meta['unit']} of {show(length, Unit.SECOND)}" + (f", {lit} lit" if lit else "")
    return Figure(
        "step",
        f"One {table.meta['unit']}, along time",
        picture(parts, height, label, kind="lit" if lit else ""),
        caption,
        place(table.source),
        tuple((CLASS[a], a) for a in used),
        _rows(table, length),
    )


def _shows(table: Table, found: Finding | None) -> bool:
    """Whether this step has any of the account that the finding claims from."""
    lit = found.account.value if found and found.account else ""
    c = table.columns
    first = c["lane"] == c["lane"][0] if len(table) else c["lane"] == ""
    return bool(lit and (first & (c["account"] == lit)).any())


def _drawn(table: Table, length: float, found: Finding | None) -> list[str]:
    c = table.columns
    scale = (WIDTH - LEFT - 8) / length
    lanes = {lane: i for i, lane in enumerate(dict.fromkeys(c["lane"].tolist()))}
    lit = found.account.value if found and found.account else ""
    said = " ".join(r.text for r in found.because) if found else ""
    parts = []
    for t in ticks(0.0, length, 8):
        x = LEFT + t * scale
        parts.append(line(x, TOP - 4, x, TOP + len(lanes) * (ROW + GAP)))
        parts.append(text(x, TOP - 9, show(t, Unit.SECOND), "axis", "middle"))
    for lane, i in lanes.items():
        y = TOP + i * (ROW + GAP)
        parts.append(text(LEFT - 8, y + 14, short(lane, 22), "t", "end"))
        parts.append(box(LEFT, y, WIDTH - LEFT - 8, ROW, "lane"))
    for lane, start, end, name, account, count in zip(*(c[k].tolist() for k in _COLUMNS), strict=True):
        y = TOP + lanes[lane] * (ROW + GAP)
        first = lane == next(iter(lanes))
        hot = account == lit if first else len(name) >= SHORTEST_NAME and name in said
        kind = CLASS.get(account, "host") + (" hot" if hot else "")
        many = f" and {count - 1} more" if count > 1 else ""
        title = f"{name}{many}: {show(end - start, Unit.SECOND)} at {show(start, Unit.SECOND)}"
        parts.append(box(LEFT + start * scale, y, (end - start) * scale, ROW, kind, title))
        room = int((end - start) * scale / PIXELS_PER_LETTER)
        if first:  # the account and its seconds, or at least the seconds
            lasts = show(end - start, Unit.SECOND)
            label = next((w for w in (f"{name} {lasts}", lasts) if len(w) <= room), "")
        else:
            label = short(name, room) if room > SHORTEST_LABEL and not account else ""
        if label:
            parts.append(text(LEFT + (start + end) / 2 * scale, y + 14, label, "in", "middle"))
    return parts


_COLUMNS = ("lane", "start_s", "end_s", "name", "account", "count")


def _rows(table: Table, length: float) -> tuple[tuple[str, ...], ...]:
    c = table.columns
    first = c["lane"][0] if len(table) else ""
    rows = [
        (name, show(start, Unit.SECOND), show(end - start, Unit.SECOND))
        for lane, start, end, name in zip(*(c[k].tolist() for k in _COLUMNS[:4]), strict=True)
        if lane == first and end - start >= SEEN_PART * length
    ]
    return (("what", "begins", "lasts"), *rows[:40])
