"""Something a program said that has a meaning: a typed message, with its numbers and names in slots.

Rules read kinds, roles and slots; they never look into sentences.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from stallwise.evidence.fact import WHOLE, Scope, Source


class Form(StrEnum):
    """What a printed time counts from."""

    DATED = "date and time"  # seconds since 1970, as if its zone were UTC
    YEARLESS = "date without year"  # since New Year
    CLOCK = "time of day"  # since midnight
    BOOT = "seconds since boot"


@dataclass(frozen=True, slots=True)
class Stamp:
    """The earliest and latest second at which a line may have been written, on the clock of its file."""

    from_s: float
    to_s: float
    form: Form
    offset_s: float | None = None  # of its zone from UTC; None where neither the line nor its file says
    own: bool = True  # printed in the line itself; else between those of its neighbours
    text: str = ""  # as printed
    quoted_s: float | None = None  # a dated time in the line's words: of another program's clock


class Role(StrEnum):
    """What a message can prove."""

    ROOT = "root"  # the trouble itself, seen by the one that has it
    CASCADE = "cascade"  # follows a trouble elsewhere: an earlier root explains it
    CONFIRMATION = "confirmation"  # agrees with a trouble, or states a setting; alone it proves nothing
    ADVICE = "advice"  # "may be caused by", "consider": never evidence


@dataclass(frozen=True, slots=True)
class Event:
    """One line of one file, understood."""

    kind: str  # what happened, whoever says it: "peer-lost", "driver-error"
    pattern_id: str  # which entry of the book fitted
    text: str  # the message without its prefix
    source: Source
    role: Role = Role.ROOT
    component: str = ""  # who printed it
    level: str = ""  # debug, info, warning, error
    scope: Scope = WHOLE
    slots: dict[str, float | str] = field(default_factory=dict)
    time_s: float = float("nan")
    times: int = 1  # how often the file repeats it, on its first occurrence
    ends_log: bool = False  # nothing but its own traceback follows
    stamp: Stamp | None = None  # when, on the clock of its file

    def number(self, slot: str, default: float = float("nan")) -> float:
        """The slot as a number."""
        value = self.slots.get(slot, default)
        return value if isinstance(value, float) else default

    def word(self, slot: str, default: str = "") -> str:
        """The slot as text."""
        value = self.slots.get(slot, default)
        return value if isinstance(value, str) else f"{value:g}"
