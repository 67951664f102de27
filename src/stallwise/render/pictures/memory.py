"""What filled the memory: by category at the peak, and alive bytes over time."""

from __future__ import annotations

from stallwise.evidence.catalog.memory import LIVE_BYTES
from stallwise.findings.diagnosis import Diagnosis
from stallwise.render.phrases import place
from stallwise.render.pictures import Figure
from stallwise.render.pictures._chart import PANEL, Curve, panel
from stallwise.render.svg import WIDTH, box, picture, short, text
from stallwise.units import Unit, show

PLACE = 50
LEFT, ROW, BAR = 170.0, 24.0, 34.0
MOST_PLACES = 12


def draw(diagnosis: Diagnosis) -> list[Figure]:
    """Composition, then the course."""
    return [*_composition(diagnosis), *_course(diagnosis)]


def _composition(diagnosis: Diagnosis) -> list[Figure]:
    tables = diagnosis.evidence.table("memory.peak")
    if not tables:
        return []
    table = tables[0]
    rows = list(zip(*(table.columns[k].tolist() for k in ("category", "place", "size_bytes")), strict=True))
    total = sum(size for _, _, size in rows)
    if total <= 0:
        return []
    by_kind: dict[str, float] = {}
    for kind, _, size in rows:
        by_kind[kind] = by_kind.get(kind, 0.0) + size
    kinds = sorted(by_kind, key=lambda kind: -by_kind[kind])
    shade = {kind: f"m{i % 8 + 1}" for i, kind in enumerate(kinds)}
    parts, x = [], 0.0
    for kind in kinds:
        width = by_kind[kind] / total * WIDTH
        title = f"{kind}: {show(by_kind[kind], Unit.BYTE)}, {by_kind[kind] / total:.0%}"
        parts.append(box(x, 0, max(width - 1, 0.5), BAR, shade[kind], title))
        if width > 90:
            parts.append(
                text(
                    x + width / 2,
                    22,
                    short(f"{kind} {show(by_kind[kind], Unit.BYTE)}", int(width / 6.5)),
                    "in",
                    "middle",
                )
            )
        x += width
    largest = rows[0][2]
    for i, (kind, where, size) in enumerate(rows[:MOST_PLACES]):
        y = BAR + 12 + i * ROW
        parts.append(
            box(0, y, max(size / largest * LEFT, 1.0), ROW - 6, shade[kind], f"{where}: {show(size, Unit.BYTE)}")
        )
        parts.append(text(LEFT + 8, y + 13, f"{show(size, Unit.BYTE)}  {kind}  {short(where, 110)}", "t"))
    height = BAR + 16 + min(len(rows), MOST_PLACES) * ROW
    return [
        Figure(
            "memory",
            "What filled the memory",
            picture(parts, height, f"{show(total, Unit.BYTE)} alive at the peak, by category"),
            f"{show(total, Unit.BYTE)} alive at the peak; below, the places in the code that hold most.",
            place(table.source),
            tuple((shade[k], f"{k} {show(by_kind[k], Unit.BYTE)}") for k in kinds if by_kind[k] > 0),
            (("category", "place", "size"), *((k, p, show(s, Unit.BYTE)) for k, p, s in rows[:40])),
        )
    ]


def _course(diagnosis: Diagnosis) -> list[Figure]:
    found = []
    for number, series in enumerate(diagnosis.evidence.series(LIVE_BYTES)[:4]):
        if len(series.x) > 1:
            parts = panel([Curve("alive", series.x, series.values)], "bytes alive", Unit.BYTE, series.over)
            label = "Bytes alive over time"
            found.append(
                Figure(
                    f"memory-course-{number}",
                    label,
                    picture(parts, PANEL + 4, label),
                    LIVE_BYTES.meaning,
                    place(series.source),
                )
            )
    return found
