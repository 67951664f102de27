"""A run held against its budgets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stallwise.doctor.findings.budget import Verdict as Held
from stallwise.render.blocks import Column, Document, Verdict, number, sentence, table
from stallwise.render.blocks import document as filled


def word(held: Held) -> str:
    """What became of one budget."""
    return "broken" if held.broken else "unknown" if held.seen is None else "kept"


def document(verdicts: Sequence[Held], failed: bool, reason: str, *, deep: bool = False) -> Document:
    """The answer of `check`."""
    words = [word(v) for v in verdicts]
    counts = ", ".join(f"{words.count(w)} {w}" for w in ("kept", "broken", "unknown") if w in words)
    rows = ((w, v.budget.name, v.budget.text, v.seen_text, v.says, v.source if v.broken else "")
            for w, v in zip(words, verdicts, strict=True))  # fmt: skip
    head = (
        Column("state"),
        Column("budget"),
        number("limit"),
        number("seen"),
        sentence("what it means", 1),
        Column("where", 2),
    )
    says = f"{'FAILED' if failed else 'PASSED'}  {len(words)} budgets: {counts}" if words else "no budgets"
    return filled(
        Verdict(says, reason, tone="bad" if failed else "good"), table("", head, rows), verb="check",
    )  # fmt: skip


def data(verdicts: Sequence[Held], failed: bool, reason: str, ranked: tuple[str, ...]) -> dict[str, Any]:
    """The JSON contract."""
    return {
        "schema": "stallwise.check/1",
        "failed": failed,
        "failing": reason,
        "ranked": list(ranked),
        "budgets": [
            {
                "name": v.budget.name, "limit": v.budget.limit, "least": v.budget.least, "unit": v.budget.unit.value,
                "seen": v.seen, "broken": v.broken, "says": v.says, "source": v.source,
            }
            for v in verdicts
        ],
    }  # fmt: skip
