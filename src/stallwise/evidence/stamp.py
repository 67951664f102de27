"""When a line was written, as far as it says: an interval on a clock of some form."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
