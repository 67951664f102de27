"""Queue, KV cache and token rates of a serving engine over time."""

from __future__ import annotations

import numpy as np

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.evidence.catalog.serving import ENGINE_SAMPLES
from stallwise.evidence.fact import Table
from stallwise.render.blocks import Picture, Tab
from stallwise.render.phrases import place
from stallwise.render.pictures._chart import PANEL, Curve, panel
from stallwise.render.svg import picture
from stallwise.units import Unit

PLACE = 40
TAB = Tab.TIMELINE
FEWEST = 2  # samples that make a line
PANELS = (
    ("requests", Unit.COUNT, (("running", "c1"), ("waiting", "c2"), ("paused", "c3"))),
    ("KV cache in use", Unit.SHARE, (("kv_share", "c1"), ("hit_share", "c3"))),
    ("tokens a second", Unit.TOKEN_PER_S, (("generation_token_per_s", "c1"), ("prompt_token_per_s", "c2"))),
)
WORDS = {
    "running": "running", "waiting": "waiting", "paused": "paused", "kv_share": "KV cache in use",
    "hit_share": "found in the prefix cache", "generation_token_per_s": "generation",
    "prompt_token_per_s": "prompt",
}  # fmt: skip


def draw(diagnosis: Diagnosis) -> list[Picture]:
    """One figure for each log."""
    found = []
    for number, table in enumerate(diagnosis.evidence.table(ENGINE_SAMPLES)):
        if len(table) >= FEWEST and (figure := _figure(table, number)):
            found.append(figure)
    return found


def _figure(table: Table, number: int) -> Picture | None:
    parts: list[str] = []
    words = []
    count = 0
    x = np.asarray(table.columns["time_s"], float)
    for title, unit, columns in PANELS:
        curves = [
            Curve(WORDS[name], x, np.asarray(table.columns[name], float), kind)
            for name, kind in columns
            if name in table.columns and np.isfinite(np.asarray(table.columns[name], float)).any()
        ]
        if curves:
            parts += panel(curves, title, unit, "time_s", count * PANEL)
            words.append(title)
            count += 1
    if not count:
        return None
    engine = str(table.meta.get("engine", "the engine"))
    return Picture(
        f"serving-{number}",
        f"What {engine} did over time",
        picture(parts, count * PANEL + 4, f"{', '.join(words)} over time"),
        "A queue that grows while the KV cache is full is a capacity problem; one that grows while the cache has room is a "
        "scheduling or a host problem.",
        place(table.source),
    )
