"""Sliders for what-if: a table of replays, packed for the page, which only looks them up."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.evidence.fact import Table
from stallwise.render.phrases import an, place
from stallwise.render.strict_json import dumps
from stallwise.units import Unit, show

SCRIPTS = ("sliders",)
TABLE = "replayed_together"


def sliders_parts(diagnosis: Diagnosis) -> dict[str, Any] | None:
    """What the section lays out; None where nothing was replayed. Of several ranks the first is shown, and named."""
    tables = diagnosis.evidence.table(TABLE)
    if not tables:
        return None
    table = [t for t in tables if t.scope == tables[0].scope][-1]  # the newest: at the step that is told
    several = len({t.scope for t in tables}) > 1
    levels, meanings = table.meta["levels"], table.meta["meanings"]
    words = [_part(level) for level in levels]
    steps = table.columns["step_s"].tolist()
    longest = max(steps)
    data = {"words": words, "steps": [[_step_text(table, s, steps[0]), s / longest] for s in steps]}
    return {
        "changes": [{"name": name, "meaning": meaning} for name, meaning in meanings.items()],
        "words": words,
        "most": len(levels) - 1,
        "unit": table.meta["unit"],
        "of": f"{table.scope}, whose own {table.meta['unit']} is {show(steps[0], Unit.SECOND)}" if several else "",
        "source": place(table.source),
        "rows": list(_rows(table, words)),
        # The data stands in a script element: no "<" may end it.
        "data": Markup(dumps(data, separators=(",", ":")).replace("<", "\\u003c")),
    }


def _part(level: float) -> str:
    return "as it is" if level == 0 else "all of it" if level == 1 else show(level, Unit.SHARE)


def _step_text(table: Table, step_s: float, now_s: float) -> str:
    text = f"{an(table.meta['unit']).capitalize()} takes {show(step_s, Unit.SECOND)}"
    return text if step_s == now_s else f"{text} instead of {show(now_s, Unit.SECOND)} ({now_s / step_s:.2f}x)"


def _rows(table: Table, words: list[str]) -> Any:
    """Every change made wholly or not at all, in all combinations."""
    names, levels = list(table.meta["meanings"]), table.meta["levels"]
    for at, step_s in enumerate(table.columns["step_s"].tolist()):
        parts = [float(table.columns[name][at]) for name in names]
        if all(p in (0.0, 1.0) for p in parts):
            yield {"parts": [words[levels.index(p)] for p in parts], "step": show(step_s, Unit.SECOND)}
