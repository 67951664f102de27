"""Numbers and places as every report words them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from stallwise.doctor.findings.finding import Fix, Gain
from stallwise.doctor.findings.rival import Rival
from stallwise.evidence.fact import Source
from stallwise.evidence.ledger import Category, Ledger
from stallwise.evidence.words import is_label
from stallwise.units import Unit, show

RANGE_SHARE = 0.05  # of the step: smaller accounts are told without their range
FIRST_LINE = "line 1"  # of a typed sentence: all of it
MOST_NAMED = 8  # spans and gauges of the user's that a report shows; the rest is in the JSON


def an(unit: str) -> str:
    """With its article."""
    return f"an {unit}" if unit[0] in "aeiou" else f"a {unit}"


def gain_range(gain: Gain) -> str:
    """ "57.4 to 62.4 ms" with the unit once where both ends share it."""
    low, high = show(gain.low_s, Unit.SECOND), show(gain.high_s, Unit.SECOND)
    if low == high:
        return high
    return f"up to {high}" if gain.low_s == 0 else ends(gain.low_s, gain.high_s)


def speed_up(gain: Gain, ledger: Ledger | None) -> str:
    """ "1.92-2.09x": the step before over the step after; empty where the step is unknown."""
    step_s = gain.step_s or (ledger.whole_s if ledger else 0.0)
    if ledger is None or step_s <= gain.high_s:
        return ""
    low, high = (step_s / (step_s - s) for s in (gain.low_s, gain.high_s))
    if high >= 10:
        return f"{low:.1f}-{high:.0f}x"
    return f"{low:.2f}-{high:.2f}x" if high - low >= 0.005 else f"{high:.2f}x"


def named_by_user(ledger: Ledger) -> list[str]:
    """The user's spans with their part of the whole, then the gauges."""
    rows = [
        f"{name} {show(seconds, Unit.SECOND)}"
        + (f", {show(seconds / ledger.whole_s, Unit.SHARE)}" if ledger.whole_s else "")
        for name, seconds in list(ledger.spans.items())[:MOST_NAMED]
    ]
    return rows + [f"{name} = {value:.6g}" for name, value in list(ledger.gauges.items())[:MOST_NAMED]]


def worth(gain: Gain, ledger: Ledger | None) -> str:
    """ "57.4 to 62.4 ms a step (1.92-2.09x)", and how much of it other accounts hold."""
    faster = speed_up(gain, ledger)
    text = f"{gain_range(gain)} {an(ledger.unit if ledger else 'step')}" + (f" ({faster})" if faster else "")
    text += ", measured" if gain.measured else ""
    return f"{text}, up to {show(gain.beside_s, Unit.SECOND)} of it from other accounts" if gain.beside_s else text


def ends(low_s: float, high_s: float) -> str:
    """ "44.2 to 63.6 ms" with the unit once where both ends share it."""
    low, high = show(low_s, Unit.SECOND), show(high_s, Unit.SECOND)
    number, unit = low.rsplit(" ", 1)
    return f"{number} to {high}" if high.endswith(f" {unit}") else f"{low} to {high}"


def fix_worth(fix: Fix) -> str:
    """What a fix wins, in seconds or in words."""
    if fix.gain is None or fix.gain.high_s <= 0:
        return fix.worth
    return f"{gain_range(fix.gain)} less" + (", measured" if fix.gain.measured else "")


def rival_row(rival: Rival) -> str:
    """Another cause of the same symptom, why it comes later, and what decides."""
    return f"{rival.cause}: {rival.less_likely}. Check {rival.check}"


def category_ends(ledger: Ledger, category: Category) -> str:
    """ "44.2 to 63.6 ms" for an account that matters and may lie off; else nothing."""
    if category not in ledger.ranges or ledger.share(category) < RANGE_SHARE:
        return ""
    return ends(*ledger.ranges[category])


def place(source: Source) -> str:
    """A source by the name of its file, without its folders; by the words themselves where somebody typed them."""
    if is_label(source.file):  # a typed sentence is quoted already; of several lines only the number is needed
        where = source.where.partition(":")[0]
        return f"{source.file} {where}" if where.startswith("line ") and where != FIRST_LINE else source.file
    name = PurePath(source.file).name or source.file
    return f"{name} {source.where}".strip()


def places(sources: Iterable[Source]) -> str:
    """The first two places."""
    return ", ".join(dict.fromkeys(place(s) for s in list(sources)[:2]))
