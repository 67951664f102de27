"""The report of some files as the page shows it: made in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stallwise.doctor.examine import diagnose
from stallwise.render.blocks import plain
from stallwise.render.html import to_html
from stallwise.render.json import question_to_dict
from stallwise.render.redact import shareable
from stallwise.render.verdict import verdict


def report(paths: list[str], base: str, share: bool, answers: list[str]) -> dict[str, Any]:
    """The verdict in words, and the whole report as HTML."""
    diagnosis = diagnose(*paths, answers=answers, base=Path(base), workers=1)
    if share:
        diagnosis = shareable(diagnosis)
    says = verdict(diagnosis)
    return {
        "html": to_html(diagnosis),
        "what": plain(says.what),
        "why": plain(says.why),
        "do": f"{plain(says.do)} {plain(says.worth)}".strip(),
        "state": diagnosis.state.value,
        "questions": [question_to_dict(q) for q in diagnosis.questions],
        "ranked": list(diagnosis.ranked[:10]),
    }
