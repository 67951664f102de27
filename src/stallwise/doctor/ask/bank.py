"""The questions, and how often each answer is given under each cause (answers.json, counted by bench/fit_questions.py)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from stallwise.causes import all_rules
from stallwise.doctor.findings.question import Choice
from stallwise.tables import table

SEEN = "seen: "  # before a cause: the key of what is to be seen of it
LEVELS = 90  # of a share, one printable character each
_FIRST = 35  # "#": no quote before it, and the backslash is jumped over
_BACKSLASH = 92


@dataclass(frozen=True, slots=True)
class Fixed:
    """A question whose choices never change."""

    text: str
    choices: tuple[Choice, ...]
    not_after: tuple[str, ...]  # quantities that answer it
    needs: str  # a field of Presence
    complaint: bool  # asks what is wrong


@dataclass(frozen=True, slots=True)
class Bank:
    """Everything that can be asked."""

    causes: tuple[str, ...]
    fixed: tuple[Fixed, ...]
    seen: Mapping[str, Choice]  # by cause
    # Offset and slope of the first answer's log odds after a choice was picked: ready-made sentences sound surer than they are.
    curve: tuple[float, float]
    shares: Mapping[str, Sequence[float]]  # key of a choice -> how often it is the answer, by cause


def fixed_questions() -> tuple[Fixed, ...]:
    """As written."""
    rows = table(Path(__file__).with_name("asked.toml"))["question"]
    return tuple(
        Fixed(
            row["text"],
            tuple(
                Choice(c["text"], tuple(filter(None, [c["states"]])), key=f"{row['text']} {c['text']}")
                for c in row["choices"]
            ),
            tuple(row.get("not_after", ())),
            row.get("needs", ""),
            row.get("complaint", False),
        )
        for row in rows
    )


def seen_choices() -> dict[str, Choice]:
    """Cause -> what a person sees of it."""
    seen = {rule.cause: rule.seen for rule in all_rules() if rule.seen and not rule.preview}
    return {cause: Choice(text, (f"symptom={text}",), key=f"{SEEN}{cause}") for cause, text in seen.items()}


@cache
def bank() -> Bank:
    """As the last count left it."""
    counted = json.loads(Path(__file__).with_name("answers.json").read_bytes())
    shares = {key: decoded(text) for key, text in counted["shares"].items()}
    curve = (float(counted["curve"][0]), float(counted["curve"][1]))
    return Bank(tuple(counted["causes"]), fixed_questions(), seen_choices(), curve, shares)


def encoded(shares: Sequence[float]) -> str:
    """One character a cause."""
    codes = [round(min(max(float(share), 0.0), 1.0) * (LEVELS - 1)) + _FIRST for share in shares]
    return "".join(chr(c + (c >= _BACKSLASH)) for c in codes)


def decoded(text: str) -> list[float]:
    """Shares by cause."""
    return [(code - _FIRST - (code > _BACKSLASH)) / (LEVELS - 1) for code in text.encode("ascii")]
