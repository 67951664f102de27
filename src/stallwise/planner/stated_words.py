"""Numbers of a load that a table states in words: in a row's name, its citation or a note, not in a column of its own."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from stallwise.tables import parsed

# Results are never read: only what was asked of the run.
TEXTS = ("row_id", "run_id", "name", "load", "mode", "notes", "citation")
COLUMNS = {"gpus": ("num_gpus", "gpus"), "concurrency": ("concurrency", "max_concurrency")}


@cache
def _wordings() -> dict[str, tuple[re.Pattern[str], ...]]:
    words = parsed((files("stallwise.physics.specs") / "catalog" / "load_words.toml").read_text(encoding="utf-8"))
    return {quantity: tuple(_pattern(wording) for wording in wordings) for quantity, wordings in words.items()}


def _pattern(wording: str) -> re.Pattern[str]:
    """A blank stands for what tables put between a word and its number: concurrency=8, concurrency_8, concurrency: 8."""
    text = re.escape(wording).replace(r"\ ", r"[\s_=:-]{1,3}")
    text = text.replace(re.escape("{n}"), r"(\d+)").replace(re.escape("{other}"), r"\d+")
    return re.compile(rf"(?<![a-z0-9.]){text}(?![a-z0-9.])")


def stated(row: dict[str, str], quantity: str) -> float | None:
    """A count above 0 that the row's words give; None where they give none, or two that differ."""
    for column in COLUMNS.get(quantity, ()):
        if (row.get(column) or "").strip().isdecimal():
            return float(row[column]) or None
    text = "\n".join((row.get(name) or "").lower() for name in TEXTS)
    for pattern in _wordings()[quantity]:
        found = {float(n) for n in pattern.findall(text)}
        if found:
            return found.pop() or None if len(found) == 1 else None
    return None


_MEAN_LENGTH = re.compile(r"mean about (\d[\d.]*)(k?) in\b", re.I)


def stated_decimal(row: dict[str, str], quantity: str) -> float | None:
    """A mean prompt in words ("mean about 9.4k in"); None where there is none."""
    found = _MEAN_LENGTH.search(row.get("notes") or "") if quantity == "isl" else None
    return float(found[1]) * (1000.0 if found[2] else 1.0) if found else None
