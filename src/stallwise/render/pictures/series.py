"""Step times and the card's own samples over time, one panel each."""

from __future__ import annotations

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.evidence.fact import Series
from stallwise.render.blocks import Picture, Tab
from stallwise.render.phrases import place
from stallwise.render.pictures._chart import PANEL, Curve, panel
from stallwise.render.svg import picture
from stallwise.units import Unit

PLACE = 60
TAB = Tab.TIMELINE
FEWEST = 5  # points that make a course
MOST_PANELS = 5
GROUPS = (
    ("steps", "Step by step", "step", ("run.step_time", "step.time", "run.data_time", "run.loss", "run.grad_norm", "run.gc_pause")),
    ("card", "What the GPU did", "time_s", ("gpu.clock", "gpu.power", "gpu.temperature", "gpu.utilisation", "gpu.memory_used")),
)  # fmt: skip


def draw(diagnosis: Diagnosis) -> list[Picture]:
    """A figure for steps and one for samples of the card."""
    found = []
    for slug, title, over, names in GROUPS:
        chosen: list[list[Series]] = []
        for name in names:
            alike = [s for s in diagnosis.evidence.all_series if s.quantity.name == name and len(s.x) >= FEWEST]
            if alike and len(chosen) < MOST_PANELS:
                chosen.append(alike)
        if chosen:
            found.append(_figure(slug, title, over, chosen))
    return found


def _figure(slug: str, title: str, over: str, chosen: list[list[Series]]) -> Picture:
    parts: list[str] = []
    for row, alike in enumerate(chosen):
        quantity = alike[0].quantity
        curves = [Curve(str(s.scope), s.x, s.values, f"c{i % 3 + 1}") for i, s in enumerate(alike[:16])]
        many = f" ({len(alike)} of them)" if len(alike) > 1 else ""
        zero = quantity.unit not in (Unit.CELSIUS, Unit.HERTZ)
        parts += panel(curves, f"{quantity.meaning}{many}", quantity.unit, alike[0].over, row * PANEL, zero=zero)
    words = ", ".join(alike[0].quantity.meaning for alike in chosen)
    sources = dict.fromkeys(place(s.source) for alike in chosen for s in alike[:1])
    over_words = "steps" if over == "step" else "time"
    return Picture(
        slug,
        title,
        picture(parts, len(chosen) * PANEL + 4, f"{words}, over {over_words}"),
        f"Over {over_words}.",
        ", ".join(list(sources)[:3]),
    )
