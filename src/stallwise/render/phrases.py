"""Numbers and places as every report words them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from stallwise.doctor.findings.finding import Fix, Gain
from stallwise.doctor.findings.trial import Trial
from stallwise.evidence.fact import Source
from stallwise.evidence.ledger import Category, Ledger
from stallwise.evidence.words import is_label
from stallwise.render.blocks import Number, Part, Range, Words, seconds, span
from stallwise.units import Unit, show

RANGE_SHARE = 0.05  # of the step: smaller categories are shown without their range
FIRST_LINE = "line 1"  # of a typed sentence: all of it
MOST_NAMED = 8  # spans and gauges of the user's that a report shows; the rest is in the JSON


def an(unit: str) -> str:
    """With its article."""
    return f"an {unit}" if unit[0] in "aeiou" else f"a {unit}"


def gain_range(gain: Gain) -> str:
    """ "57.4 to 62.4 ms" with the unit once where both ends share it."""
    high = show(gain.high_s, Unit.SECOND)
    return f"up to {high}" if gain.low_s == 0 else span(gain.low_s, gain.high_s, Unit.SECOND)


def speed_up(gain: Gain, ledger: Ledger | None) -> str:
    """ "1.92-2.09x": the step before over the step after; empty where the step is unknown."""
    step_s = gain.step_s or (ledger.whole_s if ledger else 0.0)
    if ledger is None or step_s <= gain.high_s:
        return ""
    low, high = (step_s / (step_s - s) for s in (gain.low_s, gain.high_s))
    if high >= 10:
        return f"{low:.1f}-{high:.0f}x"
    return f"{low:.2f}-{high:.2f}x" if high - low >= 0.005 else f"{high:.2f}x"


def named_by_user(ledger: Ledger) -> list[Words]:
    """The user's spans with their part of the whole, then the gauges."""
    rows: list[Words] = []
    for name, length_s in list(ledger.spans.items())[:MOST_NAMED]:
        part = (", ", Number(length_s / ledger.whole_s, Unit.SHARE)) if ledger.whole_s else ()
        rows.append((f"{name} ", seconds(length_s), *part))
    return rows + [f"{name} = {value:.6g}" for name, value in list(ledger.gauges.items())[:MOST_NAMED]]


def worth(gain: Gain, ledger: Ledger | None) -> tuple[Part, ...]:
    """ "57.4 to 62.4 ms per step (1.92-2.09x)", and how much of it other categories hold."""
    faster = speed_up(gain, ledger)
    text = f" per {ledger.unit if ledger else 'step'}" + (f" ({faster})" if faster else "")
    text += ", measured" if gain.measured else ""
    beside = (", up to ", seconds(gain.beside_s), " of it from other categories") if gain.beside_s else ()
    return (saved(gain), text, *beside)


def saved(gain: Gain) -> Range:
    """The seconds that a gain is worth, with what they rest on."""
    return Range(gain.low_s, gain.high_s, Unit.SECOND, gain_range(gain), gain.basis)


def fix_saves(fix: Fix) -> Words:
    """What a fix wins, in seconds or in words."""
    if fix.gain is None or fix.gain.high_s <= 0:
        return fix.worth
    return ("saves ", saved(fix.gain), ", measured" if fix.gain.measured else "")


def category_ends(ledger: Ledger, category: Category) -> Range | None:
    """How far a category that matters may lie off; None where it is small or that is not known."""
    if category not in ledger.ranges or ledger.share(category) < RANGE_SHARE:
        return None
    return Range(*ledger.ranges[category], Unit.SECOND)


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


def measured_gain(trial: Trial) -> str:
    """ "1.24x (1.21 to 1.27)"."""
    if trial.high == float("inf"):
        return f"{trial.ratio:.2f}x (too few blocks for an interval)"
    return f"{trial.ratio:.2f}x ({trial.low:.2f} to {trial.high:.2f})"
