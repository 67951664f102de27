"""What changed between two runs, as a page."""

from __future__ import annotations

from stallwise.doctor.findings.comparison import Change, Comparison
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.render.answers import Block, Figure, Grid, Rows, Text, Verdict, page
from stallwise.render.comparison import comparison_text, verdict_line
from stallwise.render.pictures._bars import Bar, bars
from stallwise.render.pictures._categories import CLASS
from stallwise.render.svg import picture
from stallwise.render.verdict import CATEGORY_MEANING, in_a_word
from stallwise.units import Unit, show

SAME = 0.005  # of the metric: less is no change
MOST_ROWS = 40


def to_html(comparison: Comparison) -> str:
    """The whole page."""
    good, bad = comparison.good, comparison.bad
    blocks: list[Block | None] = [
        _picture(comparison),
        _changes("Slower because", comparison.regressions),
        _changes("Faster because", comparison.improvements),
        Rows("Each by itself", [f"first: {in_a_word(good)}", f"second: {in_a_word(bad)}"]),
        Rows("New causes", comparison.appeared),
        Rows("Gone", comparison.vanished),
        _changes("Set up differently", comparison.setup),
        _changes("Also moved", tuple(c for c in comparison.changes if c.worse is None)),
        Text("The whole answer", comparison_text(comparison)),
    ]
    subject = f"{_named(good)} and {_named(bad)}"
    inputs = [*good.evidence.inputs, *bad.evidence.inputs]
    return page(_verdict(comparison), blocks, verb="compare", subject=subject, inputs=inputs)


def _named(side: Diagnosis) -> str:
    inputs = side.evidence.inputs
    return f"{inputs[0]}{f' and {len(inputs) - 1} more' if len(inputs) > 1 else ''}" if inputs else "stated facts"


def _verdict(comparison: Comparison) -> Verdict:
    worse = comparison.worse_by
    tone = "unclear" if worse is None else "bad" if worse > SAME else "good"
    first = next(iter(comparison.regressions if worse is None or worse > 0 else comparison.improvements), None)
    why = f"{first.what}: {first.good} before, {first.bad} now. {first.because}".strip() if first else ""
    cause = (
        f"The cause of it: {first.cause}; stallwise explain {first.cause} says more." if first and first.cause else ""
    )
    return Verdict(verdict_line(comparison), why, cause, tone, "")


def _changes(title: str, changes: tuple[Change, ...]) -> Grid:
    rows = [
        (c.what, c.good, c.bad, _moved(c), c.cause, c.because) for c in changes[:MOST_ROWS]
    ]  # fmt: skip
    return Grid(title, ("what", "first", "second", "change", "cause", "because"), rows, frozenset({1, 2, 3}))


def _moved(change: Change) -> str:
    if change.delta_s is not None:
        return f"{'+' if change.delta_s > 0 else '-'}{show(abs(change.delta_s), Unit.SECOND)}"
    return f"{change.relative:+.0%}" if change.relative is not None else ""


def _picture(comparison: Comparison) -> Figure | None:
    """Both ledgers, account by account."""
    sides = (("first", comparison.good.ledger), ("second", comparison.bad.ledger))
    ledgers = [(word, ledger) for word, ledger in sides if ledger is not None]
    if len(ledgers) < 2 or ledgers[0][1].unit != ledgers[1][1].unit:
        return None
    order = sorted({a for _, led in ledgers for a in led.seconds}, key=lambda a: list(CATEGORY_MEANING).index(a))
    rows, used = [], {}
    for word, ledger in ledgers:
        parts = []
        for category in order:
            seconds = ledger.seconds.get(category, 0.0)
            if seconds > 0:
                parts.append((CLASS[category.value], seconds, f"{category.value}: {show(seconds, Unit.SECOND)}"))
                used[CLASS[category.value]] = category.value
        rows.append(Bar(word, parts, behind=show(ledger.whole_s, Unit.SECOND)))
    drawn, height = bars(rows, lambda v: show(v, Unit.SECOND))
    label = f"Where a {ledgers[0][1].unit} goes, first and second"
    return Figure("compare", label, picture(drawn, height, label), "Every second is in one account.", "",
                  tuple(used.items()))  # fmt: skip
