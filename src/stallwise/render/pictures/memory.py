"""What filled the memory: by category at the peak, and alive bytes over time, stacked by kind where stacks tell it."""

from __future__ import annotations

import numpy as np

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.evidence.catalog.memory import LIVE_BYTES, OVER_TIME
from stallwise.render.blocks import Picture, Tab
from stallwise.render.phrases import place
from stallwise.render.pictures._areas import areas
from stallwise.render.pictures._chart import PANEL, Curve, clock, panel
from stallwise.render.pictures._memory_kinds import in_order, shade_of
from stallwise.render.svg import WIDTH, box, picture, short, text
from stallwise.units import Unit, show

PLACE = 50
TAB = Tab.MEMORY
LEFT, ROW, BAR = 170.0, 24.0, 34.0
MOST_PLACES = 12
MOST_DEVICES = 4


def draw(diagnosis: Diagnosis) -> list[Picture]:
    """Composition, then the course."""
    return [*_composition(diagnosis), *(_stacked(diagnosis) or _over_time(diagnosis))]


def _stacked(diagnosis: Diagnosis) -> list[Picture]:
    found = []
    for number, table in enumerate(diagnosis.evidence.table(OVER_TIME)[:MOST_DEVICES]):
        time_s = table.columns["time_s"]
        kinds = in_order(k for k in table.columns if k != "time_s")
        peaks = {k: float(table.columns[k].max()) for k in kinds}
        layers = [(shade_of(k), f"{k}: at most {show(peaks[k], Unit.BYTE)}", table.columns[k]) for k in kinds]
        scale, tail = clock(float(time_s[-1] - time_s[0]))
        parts, height = areas(
            time_s / scale,
            layers,
            lambda v: show(v, Unit.BYTE),
            lambda v, tail=tail: f"{v:g}{tail}",  # type: ignore[misc]
        )
        most = show(float(np.sum([table.columns[k] for k in kinds], axis=0).max()), Unit.BYTE)
        found.append(
            Picture(
                f"memory-course-{number}",
                "Memory over time, by what it holds",
                picture(parts, height, f"Bytes alive over time, stacked by kind, at most {most}"),
                f"At most {most} alive. Kinds follow from the stack that made each block; in every stretch of the record "
                "the fullest moment is drawn.",
                place(table.source),
                tuple((shade_of(k), k) for k in reversed(kinds)),
                (("kind", "most alive", "at the end"),
                 *((k, show(peaks[k], Unit.BYTE), show(float(table.columns[k][-1]), Unit.BYTE)) for k in kinds)),
            )
        )  # fmt: skip
    return found


def _composition(diagnosis: Diagnosis) -> list[Picture]:
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
    shade = {kind: shade_of(kind) for kind in kinds}
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
        Picture(
            "memory",
            "What filled the memory",
            picture(parts, height, f"{show(total, Unit.BYTE)} alive at the peak, by category"),
            f"{show(total, Unit.BYTE)} alive at the peak; below, the places in the code that hold most.",
            place(table.source),
            tuple((shade[k], f"{k} {show(by_kind[k], Unit.BYTE)}") for k in kinds if by_kind[k] > 0),
            (("category", "place", "size"), *((k, p, show(s, Unit.BYTE)) for k, p, s in rows[:40])),
        )
    ]


def _over_time(diagnosis: Diagnosis) -> list[Picture]:
    found = []
    for number, series in enumerate(diagnosis.evidence.series(LIVE_BYTES)[:4]):
        if len(series.x) > 1:
            parts = panel([Curve("alive", series.x, series.values)], "bytes alive", Unit.BYTE, series.over)
            label = "Bytes alive over time"
            found.append(
                Picture(
                    f"memory-course-{number}",
                    label,
                    picture(parts, PANEL + 4, label),
                    LIVE_BYTES.meaning,
                    place(series.source),
                )
            )
    return found
