"""What kinds of events mean in an incident (rules.toml)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from stallwise.evidence.event import Event
from stallwise.tables import table

ACTS_S = 120.0


@dataclass(frozen=True, slots=True)
class KindRule:
    """One row of the table."""

    name: str
    place: int  # nearer to the root first
    owner: str = "your code"
    drain: bool = False
    cause: str = ""
    acts_s: float = ACTS_S
    explains: frozenset[str] = frozenset()
    anywhere: bool = False
    action: str = ""


@cache
def document() -> dict[str, Any]:
    """The whole table."""
    return table(Path(__file__).with_name("rules.toml"))


@cache
def kinds() -> dict[str, KindRule]:
    """Rules by kind."""
    return {
        row["name"]: KindRule(**{**row, "explains": frozenset(row.get("explains", ())), "place": place})
        for place, row in enumerate(document()["kind"])
    }


def rule_of(kind: str) -> KindRule:
    """The rule of a kind; kinds without one come last and belong to the code."""
    return kinds().get(kind) or KindRule(kind, len(kinds()))


def kind_of(event: Event) -> str:
    """The event's kind, with the fault that its code stands for."""
    fault = next((str(v) for k, v in event.slots.items() if k == "code.fault"), "")
    return f"{event.kind}.{fault}" if event.kind == "driver-error" else event.kind
