"""What changed between two runs, and by how much."""

from __future__ import annotations

from typing import Any

from stallwise.doctor.findings.comparison import SCHEMA, Change, Comparison
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.render.blocks import (
    Column,
    Document,
    Facts,
    Interactive,
    Number,
    Picture,
    Tab,
    Table,
    Verdict,
    Words,
    number,
    seconds,
    sentence,
    share,
    steps,
    table,
)
from stallwise.render.blocks import document as filled
from stallwise.render.colours import CLASS
from stallwise.render.pictures._bars import Bar, bars
from stallwise.render.svg import picture
from stallwise.render.verdict import CATEGORY_MEANING, in_a_word
from stallwise.units import Unit, show

SAME = 0.005  # of the metric: less is no change
NEGLIGIBLE_S = 1e-6
MOST_ROWS = 10  # of the first screen


def document(comparison: Comparison, *, deep: bool = False) -> Document:
    """The verdict first, then what explains it."""
    good, bad = comparison.good, comparison.bad
    left_s = comparison.unexplained_s
    rest: Words = ""
    if left_s is not None and abs(left_s) > NEGLIGIBLE_S:
        rest = (seconds(left_s), " per step; a trace of both would show where")
    return filled(
        _verdict(comparison),
        _changes("Slower because", comparison.regressions, "slower"),
        _changes("Faster because", comparison.improvements, "faster"),
        steps("Not explained", [rest], label="rest"),
        Facts((("first", in_a_word(good)), ("second", in_a_word(bad))), title="Each by itself", label="each"),
        steps("New causes", comparison.appeared, label="new"),
        steps("Gone", comparison.vanished, label="gone"),
        _changes("Set up differently", comparison.setup, "setup"),
        _changes("Also moved", tuple(c for c in comparison.changes if c.worse is None), "also"),
        *([_picture(comparison), _both(comparison)] if deep else []),
        verb="compare",
        subject=f"{_named(good)} and {_named(bad)}",
        inputs=(*good.evidence.inputs, *bad.evidence.inputs),
    )


def _named(side: Diagnosis) -> str:
    inputs = side.evidence.inputs
    return f"{inputs[0]}{f' and {len(inputs) - 1} more' if len(inputs) > 1 else ''}" if inputs else "stated facts"


def _verdict(comparison: Comparison) -> Verdict:
    worse = comparison.worse_by
    tone = "unclear" if worse is None else "bad" if worse > SAME else "good"
    first = next(iter(comparison.regressions if worse is None or worse > 0 else comparison.improvements), None)
    cause = f"The cause of it is {first.cause}: stallwise explain {first.cause}." if first and first.cause else ""
    if worse is None:
        return Verdict("The two share no measure of speed; here is what differs.", "", cause, tone)
    if abs(worse) < SAME:
        return Verdict(f"No difference in {comparison.metric}.", "", cause, tone)
    word = f" {'worse' if worse > 0 else 'better'} in {comparison.metric}."
    return Verdict(("The second is ", share(abs(worse), 1), word), "", cause, tone)


def _changes(title: str, changes: tuple[Change, ...], label: str) -> Table:
    head = (
        sentence("what"),
        Column("first"),
        Column("second"),
        number("change"),
        Column("cause", 1),
        sentence("because", 2),
    )
    rows = ((c.what, c.good, c.bad, moved(c), c.cause, c.because) for c in changes)
    return table(title, head, rows, label=label, most=MOST_ROWS)


def moved(change: Change) -> Words:
    """By how much: seconds where they are known, else a share."""
    if change.delta_s is not None:
        sign = "+" if change.delta_s > 0 else "-"
        return Number(change.delta_s, Unit.SECOND, f"{sign}{show(abs(change.delta_s), Unit.SECOND)}")
    return share(change.relative, signed=True) if change.relative is not None else ""


def _both(comparison: Comparison) -> Interactive | None:
    """A step of each on one axis."""
    from stallwise.render.timeline import SCRIPTS, timeline_parts

    sides = (comparison.good, comparison.bad)
    if not all(side.scenes for side in sides):
        return None
    values = timeline_parts([side.scenes[0] for side in sides], (), ("first", "second"))
    return Interactive("timeline", SCRIPTS, values, tab=Tab.TIMELINE) if values else None


def _picture(comparison: Comparison) -> Picture | None:
    """Both ledgers, category by category."""
    sides = (("first", comparison.good.ledger), ("second", comparison.bad.ledger))
    ledgers = [(word, ledger) for word, ledger in sides if ledger is not None]
    if len(ledgers) < len(sides) or ledgers[0][1].unit != ledgers[1][1].unit:
        return None
    order = sorted({a for _, led in ledgers for a in led.seconds}, key=lambda a: list(CATEGORY_MEANING).index(a))
    rows, used = [], {}
    for word, ledger in ledgers:
        parts = []
        for category in order:
            length_s = ledger.seconds.get(category, 0.0)
            if length_s > 0:
                parts.append((CLASS[category.value], length_s, f"{category.value}: {show(length_s, Unit.SECOND)}"))
                used[CLASS[category.value]] = category.value
        rows.append(Bar(word, parts, behind=show(ledger.whole_s, Unit.SECOND)))
    drawn, height = bars(rows, lambda v: show(v, Unit.SECOND))
    label = f"Where a {ledgers[0][1].unit} goes, first and second"
    return Picture("compare", label, picture(drawn, height, label), "Every second is in one category.", "",
                   tuple(used.items()))  # fmt: skip


def data(comparison: Comparison) -> dict[str, Any]:
    """The JSON contract."""
    return {
        "schema": SCHEMA,
        "good": _side(comparison.good),
        "bad": _side(comparison.bad),
        "metric": comparison.metric,
        "slower": comparison.slower,
        "worse_by": comparison.worse_by,
        "regressions": [_change_data(c) for c in comparison.regressions],
        "improvements": [_change_data(c) for c in comparison.improvements],
        "other": [_change_data(c) for c in comparison.changes if c.worse is None],
        "setup": [_change_data(c) for c in comparison.setup],
        "appeared": list(comparison.appeared),
        "vanished": list(comparison.vanished),
        "unexplained_s": comparison.unexplained_s,
    }


def _change_data(change: Change) -> dict[str, Any]:
    return {
        "what": change.what,
        "good": change.good,
        "bad": change.bad,
        "delta_s": change.delta_s,
        "relative": change.relative,
        "cause": change.cause,
        "because": change.because,
    }


def _side(diagnosis: Diagnosis) -> dict[str, Any]:
    return {
        "inputs": diagnosis.evidence.inputs,
        "state": diagnosis.state.value,
        "ranked": list(diagnosis.ranked),
        "why_unclear": diagnosis.why_unclear,
    }
