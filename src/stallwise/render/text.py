"""The diagnosis for a terminal: the answer first, then the proof, then what to do."""

from __future__ import annotations

import textwrap

from stallwise.doctor.findings.diagnosis import Diagnosis, Hypothesis, State
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.evidence.ledger import Ledger
from stallwise.render.phrases import an, category_ends, fix_worth, named_by_user, place, places, rival_row, worth
from stallwise.render.trials import tried_rows
from stallwise.render.verdict import (
    could_be,
    leading_hypothesis,
    not_understood_rows,
    proof_rows,
    run_findings,
    tree_rows,
    unexplained_rows,
    verdict,
)
from stallwise.render.visible import visible
from stallwise.terminal import terminal_columns
from stallwise.units import Unit, show

LABEL_WIDTH = 24  # "where an iteration goes" and a space
BAR_CELLS = 40
MIN_WIDTH, MAX_WIDTH = 80, 130
QUOTES = "\u201c\u201d"
CUT = "\u2026"  # where typed words were shortened
PLAIN_ANSWER = 0.8  # sure enough that a list of other suspects would only distract
MOST_CAUSES = 5  # that a person weighs
MOST_REASONS = 2  # of an undecided answer
MOST_CAPTURES = 2  # one may be impossible to get
SHOWN = 0.002  # of the step: smaller accounts are left out of the bar


def to_text(diagnosis: Diagnosis, *, color: bool = False, width: int | None = None) -> str:
    """The whole report as plain text, with ANSI colours when asked."""
    wide = width or terminal_columns(110)
    page = _Page(max(MIN_WIDTH, min(MAX_WIDTH, wide)), color)
    run = run_findings(diagnosis)
    lines = [page.dim(line) for line in textwrap.wrap(diagnosis.subject, page.width)]
    lines += ["", *_verdict(diagnosis, run, page)]
    if diagnosis.ledger:
        lines += ["", *_bar(diagnosis.ledger, page)]
        lines += page.rows("your spans and gauges", named_by_user(diagnosis.ledger))
    lines += page.rows("not explained", unexplained_rows(diagnosis))
    if run and (diagnosis.state is State.SICK or leading_hypothesis(diagnosis) is run[0]):
        lines += _proof(run[0], page) if diagnosis.state is State.SICK else _nearest(run[0], page)
    lines += _well(diagnosis, page)
    named = _shares(diagnosis, run)
    lines += _others(diagnosis, run, {h.cause for h in named}, page)
    lines += page.rows("could be", [_in_a_row(named, run)] if named else [])
    lines += page.rows(
        "tried in the job", [row for trials in diagnosis.trials for row in tried_rows(trials, diagnosis)]
    )
    if diagnosis.state is State.UNCLEAR:
        lines += page.rows("not understood", not_understood_rows(diagnosis))
    asks = diagnosis.questions if diagnosis.state is State.UNCLEAR else ()
    lines += page.rows("one question", [f"{q.text} ({len(q.choices)} answers to choose from: add --ask)" for q in asks])
    lines += page.rows("asked first", tree_rows(diagnosis))
    lines += page.rows("contradiction", [r.text for r in diagnosis.contradictions])
    captures = diagnosis.next[: 1 if diagnosis.state is State.UNCLEAR else MOST_CAPTURES]
    lines += page.rows("next", [f"{n.capture.artifact}: {n.capture.command}" for n in captures])
    lines += page.rows("note", [f"{n.text} ({place(n.source)})" for n in diagnosis.notes[:5]])
    return visible("\n".join(line.rstrip() for line in lines), colors=color)


def _verdict(diagnosis: Diagnosis, run: list[Finding], page: _Page) -> list[str]:
    answer = verdict(diagnosis)
    if diagnosis.state is State.SICK:
        first = run[0]
        lines = page.opposed(answer.line, answer.tail)
        worth_text = f"Worth {worth(first.gain, diagnosis.ledger)}. " if first.gain else ""
        return lines + page.paragraph(worth_text + first.summary)
    paint = page.good if diagnosis.healthy else page.doubt
    lines = [paint(line) for line in page.paragraph(answer.line)]
    return lines + page.paragraph(answer.why) + ([page.dim(answer.tail)] if answer.tail else [])


def _well(diagnosis: Diagnosis, page: _Page) -> list[str]:
    """What was shown to be well, and what would have to change to go faster."""
    lines = page.rows("shown" if diagnosis.healthy else "seen", proof_rows(diagnosis))
    if diagnosis.healthy and diagnosis.limit:
        levers = [_fix(i + 1, f) for i, f in enumerate(diagnosis.limit.levers)]
        lines += page.rows("to go faster", levers)
    return lines


def _bar(ledger: Ledger, page: _Page) -> list[str]:
    parts = [(a, s) for a, s in ledger.seconds.items() if s > SHOWN * ledger.whole_s]
    parts.sort(key=lambda p: -p[1])
    cells = []
    for category, seconds in parts:
        about = category_ends(ledger, category)
        cell = f"{category.value} {_blocks(seconds / ledger.whole_s)} {show(seconds, Unit.SECOND)}"
        cells.append(f"{cell} ({about})" if about else cell)
    rows = [""]
    for cell in cells:  # as many accounts on a line as fit
        joined = f"{rows[-1]}   {cell}".lstrip()
        if rows[-1] and len(joined) > page.width - LABEL_WIDTH:
            rows.append(cell)
        else:
            rows[-1] = joined
    return page.rows(f"where {an(ledger.unit)} goes", rows)


def _blocks(share: float) -> str:
    return "█" * round(BAR_CELLS * share) or "▏"


def _proof(finding: Finding, page: _Page) -> list[str]:
    lines = page.rows("because", _cited(finding.because, page))
    lines += page.rows("against", _cited(finding.against, page))
    lines += page.rows("fix, in this order", [_fix(i + 1, f) for i, f in enumerate(finding.fixes)])
    lines += page.rows("not the cause", _cited(finding.not_here, page))
    lines += page.rows("do not start here", [finding.avoid] if finding.avoid else [])
    lines += page.rows("if it is not that", [rival_row(r) for r in finding.rivals])
    if finding.confidence < PLAIN_ANSWER:
        lines += page.rows("would change this", list(finding.overturn))
    return lines


def _nearest(finding: Finding, page: _Page) -> list[str]:
    """What points at the nearest cause of an undecided answer: nothing is to be fixed before it is known."""
    lines = page.rows("because", _cited(finding.because[:MOST_REASONS], page))
    lines += page.rows("against", _cited(finding.against[:MOST_REASONS], page))
    return lines


def _fix(number: int, fix: Fix) -> str:
    price = [
        part for part in (f"cost: {fix.cost}" if fix.cost else "", f"risk: {fix.risk}" if fix.risk else "") if part
    ]
    return "   ".join(part for part in (f"{number}  {fix.action}", fix_worth(fix), *price) if part)


def _others(diagnosis: Diagnosis, run: list[Finding], named: set[str], page: _Page) -> list[str]:
    """Further findings; one that is only likely and stands among the shares is not repeated."""
    shown = diagnosis.state is State.SICK or (bool(run) and leading_hypothesis(diagnosis) is run[0])
    rest = [f for f in (run[1:] if shown else run) if not (f.recognised and f.cause in named)]
    rows = {True: [], False: []}  # type: dict[bool, list[str]]
    for finding in rest[:6]:
        gain = f" · {_left(finding, diagnosis.ledger)}" if finding.gain else ""
        rows[finding.optional].append(f"{finding.headline}{gain}  [{finding.cause}, {finding.confidence:.0%}]")
    return page.rows("also", rows[False]) + page.rows("optional", rows[True])


def _left(finding: Finding, ledger: Ledger | None) -> str:
    """What a further finding adds, once those above it have taken their part."""
    assert finding.gain is not None
    return worth(finding.gain, ledger) if finding.gain.high_s > 0 else "the same time as above"


def _shares(diagnosis: Diagnosis, run: list[Finding]) -> list[Hypothesis]:
    """How the probability is shared, where it is not plain."""
    if diagnosis.healthy or (diagnosis.state is State.SICK and run[0].confidence >= PLAIN_ANSWER):
        return []
    return could_be(diagnosis, MOST_CAUSES)


def _in_a_row(hypotheses: list[Hypothesis], run: list[Finding]) -> str:
    """The causes with their shares in one row; each with a reason that stands nowhere else yet."""
    shown = {r.text for f in run[:1] for r in (*f.because, *f.against)}
    cells = []
    for h in hypotheses:
        reason = next((r.text for r in (*h.because, *h.against) if r.text not in shown and r.text[:1] != QUOTES[0]), "")
        shown.add(reason)
        cells.append(f"{h.cause} {h.probability:.0%}" + (f" ({reason})" if reason else ""))
    return " · ".join(cells)


def _cited(reasons: tuple[Reason, ...], page: _Page) -> list[str]:
    """Sentences with their places; a place is not repeated from line to line, nor typed words that were quoted already."""
    rows: list[str] = []
    last = ""
    for reason in reasons:
        where = places(reason.sources)
        if _quotes(reason.text, where):
            if _quotes(reason.text, last):
                continue
            last = where
        cited = bool(where) and where != last
        rows.append(f"{reason.text}  {page.dim(where)}" if cited else reason.text)
        last = where or last
    return rows


def _quotes(text: str, where: str) -> bool:
    """True when the sentence holds the typed words that are its place, shortened or whole."""
    return where[:1] == QUOTES[0] and all(part.strip() in text for part in where.strip(QUOTES).split(CUT))


class _Page:
    """Lines of one width, with ANSI colours or without."""

    def __init__(self, width: int, color: bool) -> None:
        self.width = width
        self.color = color

    def rows(self, label: str, rows: list[str]) -> list[str]:
        """Labelled rows, wrapped under themselves."""
        lines: list[str] = []
        for row in rows:
            lines += textwrap.wrap(
                row, self.width - LABEL_WIDTH, subsequent_indent="   ", break_long_words=False, break_on_hyphens=False
            ) or [""]
        return [f"{label if i == 0 else '':{LABEL_WIDTH}}{line}" for i, line in enumerate(lines)]

    def paragraph(self, text: str) -> list[str]:
        """Running text."""
        return textwrap.wrap(text, self.width, break_on_hyphens=False)

    def opposed(self, left: str, right: str) -> list[str]:
        """A headline with a remark at the right edge, below it where both do not fit."""
        gap = self.width - len(left) - len(right)
        if gap >= 2:
            return [self.bad(left) + " " * gap + self.dim(right)]
        return [*(self.bad(line) for line in textwrap.wrap(left, self.width)), self.dim(right)]

    def _wrap(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.color and text else text

    def bad(self, text: str) -> str:
        """The thing to fix."""
        return self._wrap("1;31", text)

    def good(self, text: str) -> str:
        """Health."""
        return self._wrap("1;32", text)

    def doubt(self, text: str) -> str:
        """Neither."""
        return self._wrap("1;33", text)

    def dim(self, text: str) -> str:
        """What may be skipped."""
        return self._wrap("2", text)
