"""Numbers and places as every report words them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from stallwise.evidence.fact import Source
from stallwise.evidence.ledger import Ledger
from stallwise.findings.finding import Fix, Gain
from stallwise.units import Unit, show


def an(unit: str) -> str:
    """With its article."""
    return f"an {unit}" if unit[0] in "aeiou" else f"a {unit}"


def gain_range(gain: Gain) -> str:
    """ "57.4 to 62.4 ms" with the unit once where both ends share it."""
    low, high = show(gain.low_s, Unit.SECOND), show(gain.high_s, Unit.SECOND)
    if low == high:
        return high
    if gain.low_s == 0:
        return f"up to {high}"
    number, unit = low.rsplit(" ", 1)
    return f"{number} to {high}" if high.endswith(f" {unit}") else f"{low} to {high}"


def speed_up(gain: Gain, ledger: Ledger | None) -> str:
    """ "1.92-2.09x": the step before over the step after; empty where the step is unknown."""
    if ledger is None or ledger.whole_s <= gain.high_s:
        return ""
    low, high = (ledger.whole_s / (ledger.whole_s - s) for s in (gain.low_s, gain.high_s))
    if high >= 10:
        return f"{low:.1f}-{high:.0f}x"
    return f"{low:.2f}-{high:.2f}x" if high - low >= 0.005 else f"{high:.2f}x"


def worth(gain: Gain, ledger: Ledger | None) -> str:
    """ "57.4 to 62.4 ms a step (1.92-2.09x)"."""
    faster = speed_up(gain, ledger)
    how = ", measured" if gain.measured else ""
    return f"{gain_range(gain)} {an(ledger.unit if ledger else 'step')}" + (f" ({faster})" if faster else "") + how


def fix_worth(fix: Fix) -> str:
    """What a fix wins, in seconds or in words."""
    if fix.gain is None or fix.gain.high_s <= 0:
        return fix.worth
    return f"{gain_range(fix.gain)} less" + (", measured" if fix.gain.measured else "")


def place(source: Source) -> str:
    """A source by the name of its file, without its folders."""
    name = PurePath(source.file).name or source.file
    return f"{name} {source.where}".strip()


def places(sources: Iterable[Source]) -> str:
    """The first two places."""
    return ", ".join(dict.fromkeys(place(s) for s in list(sources)[:2]))
