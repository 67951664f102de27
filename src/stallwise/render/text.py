"""The diagnosis for a terminal: the answer first, then the proof, then what to do."""

from __future__ import annotations

import shutil

from stallwise.evidence.ledger import Ledger
from stallwise.findings.diagnosis import Diagnosis
from stallwise.findings.finding import Finding, Fix, Gain, Reason
from stallwise.units import Unit, show

LABEL_WIDTH = 20
BAR_CELLS = 40
MIN_WIDTH, MAX_WIDTH = 80, 130


def to_text(diagnosis: Diagnosis, *, color: bool = False) -> str:
    """The whole report as plain text, with ANSI colours when asked."""
    paint = _Paint(color)
    width = max(MIN_WIDTH, min(MAX_WIDTH, shutil.get_terminal_size((110, 40)).columns))
    run = [f for f in diagnosis.findings if f.scope.kernel is None]
    lines = [paint.dim(diagnosis.subject), ""]
    lines += _verdict(diagnosis, run, paint, width)
    if diagnosis.ledger:
        lines += ["", *_bar(diagnosis.ledger, width)]
    shown = run[:1] if not diagnosis.healthy else []
    for finding in shown:
        lines += _proof(finding, paint)
    lines += _others(diagnosis, run, paint)
    lines += _table_of_hypotheses(diagnosis)
    if not diagnosis.ledger:  # with a ledger the answer is measured and needs no questions
        lines += _rows("asked first", list(diagnosis.tree))
    if diagnosis.contradictions:
        lines += _rows("cannot be true", [r.text for r in diagnosis.contradictions])
    lines += _rows("next", [f"{n.capture.artifact}: {n.capture.command}" for n in diagnosis.next[:2]])
    lines += _rows("note", [f"{n.text} ({n.source})" for n in diagnosis.notes[:5]])
    return "\n".join(line.rstrip() for line in lines)


def _verdict(diagnosis: Diagnosis, run: list[Finding], paint: _Paint, width: int) -> list[str]:
    first = run[0] if run else None
    if first is None and not diagnosis.healthy:
        return [paint.bad("Something is wrong, and nothing here says what.")]
    if diagnosis.healthy or first is None:
        lines = [paint.good("Healthy: nothing worth fixing was found.")]
        for finding in run[:3]:
            if finding.optional:
                lines.append(f"Optional: {finding.headline}{_worth(finding.gain, diagnosis.ledger)}  [{finding.cause}]")
        return lines
    tail = f"{first.cause}  {first.confidence:.0%} sure"
    gap = max(2, width - len(first.headline) - len(tail))
    lines = [paint.bad(first.headline) + " " * gap + paint.dim(tail)]
    if first.gain:
        lines.append(_worth(first.gain, diagnosis.ledger).lstrip(" ·").capitalize() + ".")
    if first.summary:
        lines.append(first.summary)
    return lines


def _worth(gain: Gain | None, ledger: Ledger | None) -> str:
    if gain is None:
        return ""
    text = f" · worth {_range(gain)} a {ledger.unit if ledger else 'step'}"
    if ledger and ledger.whole_s > gain.high_s:
        low, high = (ledger.whole_s / (ledger.whole_s - s) for s in (gain.low_s, gain.high_s))
        text += f" ({low:.2f}-{high:.2f}x)" if high - low >= 0.005 else f" ({high:.2f}x)"
    return text


def _range(gain: Gain) -> str:
    low, high = show(gain.low_s, Unit.SECOND), show(gain.high_s, Unit.SECOND)
    if low == high:
        return high
    number, unit = low.rsplit(" ", 1)
    return f"{number} to {high}" if high.endswith(f" {unit}") else f"{low} to {high}"


def _bar(ledger: Ledger, width: int) -> list[str]:
    parts = [(a.value, s) for a, s in ledger.seconds.items() if s > 0.002 * ledger.whole_s]
    parts.sort(key=lambda p: -p[1])
    cells = [
        f"{name} {'█' * max(1, round(BAR_CELLS * s / ledger.whole_s))} {show(s, Unit.SECOND)}" for name, s in parts
    ]
    return _rows(f"where a {ledger.unit} goes", cells)


def _proof(finding: Finding, paint: _Paint) -> list[str]:
    lines = _rows("because", [_cited(r, paint) for r in finding.because])
    lines += _rows("against", [_cited(r, paint) for r in finding.against])
    lines += _rows("fix, in this order", [_fix(i + 1, f) for i, f in enumerate(finding.fixes)])
    lines += _rows("looks bad, is not", [_cited(r, paint) for r in finding.not_here])
    lines += _rows("do not start here", [finding.avoid] if finding.avoid else [])
    return lines


def _fix(number: int, fix: Fix) -> str:
    worth = f"-{_range(fix.gain)}" if fix.gain else fix.worth
    return "   ".join(
        part for part in (f"{number}  {fix.action}", worth, fix.cost, fix.risk and f"risk: {fix.risk}") if part
    )


def _others(diagnosis: Diagnosis, run: list[Finding], paint: _Paint) -> list[str]:
    rest = run[1:] if not diagnosis.healthy else [f for f in run if not f.optional]
    return _rows(
        "also", [f"{f.headline}{_worth(f.gain, diagnosis.ledger)}  [{f.cause}, {f.confidence:.0%}]" for f in rest[:6]]
    )


def _table_of_hypotheses(diagnosis: Diagnosis) -> list[str]:
    rows = []
    for h in diagnosis.hypotheses[:8]:
        reason = (h.because or h.against)[0].text if (h.because or h.against) else ""
        rows.append(f"{h.probability:4.0%}  {h.cause:28} {reason}")
    return _rows("could be", rows)


def _cited(reason: Reason, paint: _Paint) -> str:
    places = ", ".join(str(s) for s in reason.sources[:2])
    return f"{reason.text}  {paint.dim(places)}" if places else reason.text


def _rows(label: str, rows: list[str]) -> list[str]:
    return [f"{label if i == 0 else '':{LABEL_WIDTH}}{row}" for i, row in enumerate(rows)]


class _Paint:
    """ANSI colours, or nothing."""

    def __init__(self, on: bool) -> None:
        self.on = on

    def _wrap(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.on and text else text

    def bad(self, text: str) -> str:
        return self._wrap("1;31", text)

    def good(self, text: str) -> str:
        return self._wrap("1;32", text)

    def dim(self, text: str) -> str:
        return self._wrap("2", text)
