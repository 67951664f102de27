"""A comparison as text and as JSON."""

from __future__ import annotations

from typing import Any

from stallwise.doctor.findings.comparison import SCHEMA, Change, Comparison
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.render.verdict import in_a_word
from stallwise.render.visible import visible
from stallwise.units import Unit, show

LABEL_WIDTH = 20
MOST_ROWS = 10


def comparison_dict(comparison: Comparison) -> dict[str, Any]:
    """Plain containers, ready for json.dumps."""
    return {
        "schema": SCHEMA,
        "good": _side(comparison.good),
        "bad": _side(comparison.bad),
        "metric": comparison.metric,
        "slower": comparison.slower,
        "worse_by": comparison.worse_by,
        "regressions": [_change(c) for c in comparison.regressions],
        "improvements": [_change(c) for c in comparison.improvements],
        "other": [_change(c) for c in comparison.changes if c.worse is None],
        "setup": [_change(c) for c in comparison.setup],
        "appeared": list(comparison.appeared),
        "vanished": list(comparison.vanished),
        "unexplained_s": comparison.unexplained_s,
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "what": change.what,
        "good": change.good,
        "bad": change.bad,
        "delta_s": change.delta_s,
        "relative": change.relative,
        "cause": change.cause,
        "because": change.because,
    }


def comparison_text(comparison: Comparison) -> str:
    """The verdict first, then what explains it."""
    lines = [verdict_line(comparison), ""]
    lines += _rows("slower because", [_line(c) for c in comparison.regressions[:MOST_ROWS]])
    lines += _rows("faster because", [_line(c) for c in comparison.improvements[:MOST_ROWS]])
    sides = [f"{word}: {in_a_word(side)}" for word, side in (("first", comparison.good), ("second", comparison.bad))]
    lines += _rows("each by itself", sides)
    lines += _rows("new causes", list(comparison.appeared))
    lines += _rows("gone", list(comparison.vanished))
    lines += _rows("set up differently", [_line(c) for c in comparison.setup[:MOST_ROWS]])
    lines += _rows("also moved", [_line(c) for c in comparison.changes if c.worse is None][:MOST_ROWS])
    if comparison.unexplained_s is not None and abs(comparison.unexplained_s) > 1e-6:
        lines += _rows(
            "not explained", [f"{show(comparison.unexplained_s, Unit.SECOND)} a step; a trace of both would tell"]
        )
    return visible("\n".join(line.rstrip() for line in lines))


def verdict_line(comparison: Comparison) -> str:
    """How much better or worse the second is."""
    worse = comparison.worse_by
    if worse is None:
        return "The two bundles share no measure of speed; here is what differs."
    if abs(worse) < 0.005:
        return f"No difference in {comparison.metric}."
    return f"The second is {abs(worse):.1%} {'worse' if worse > 0 else 'better'} in {comparison.metric}."


def _line(change: Change) -> str:
    parts = [f"{change.what}: {change.good} -> {change.bad}"]
    if change.delta_s is not None:
        parts.append(f"{'+' if change.delta_s > 0 else '-'}{show(abs(change.delta_s), Unit.SECOND)}")
    elif change.relative is not None:
        parts.append(f"{change.relative:+.0%}")
    if change.cause:
        parts.append(f"[{change.cause}]")
    if change.because:
        parts.append(change.because)
    return "  ".join(parts)


def _rows(label: str, rows: list[str]) -> list[str]:
    return [f"{label if i == 0 else '':{LABEL_WIDTH}}{row}" for i, row in enumerate(rows)]


def _side(diagnosis: Diagnosis) -> dict[str, Any]:
    return {
        "inputs": diagnosis.evidence.inputs,
        "state": diagnosis.state.value,
        "ranked": list(diagnosis.ranked),
        "why_unclear": diagnosis.why_unclear,
    }
