"""The report of some files as the page shows it: made in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stallwise.doctor.examine import diagnose
from stallwise.render.html import to_html
from stallwise.render.redact import shareable
from stallwise.render.verdict import verdict


def report(paths: list[str], base: str, share: bool) -> dict[str, Any]:
    """The verdict in words, and the whole report as HTML."""
    diagnosis = diagnose(*paths, base=Path(base), workers=1)
    if share:
        diagnosis = shareable(diagnosis)
    says = verdict(diagnosis)
    return {
        "html": to_html(diagnosis),
        "what": says.what,
        "why": says.why,
        "do": says.do,
        "state": diagnosis.state.value,
        "ranked": list(diagnosis.ranked[:10]),
    }
