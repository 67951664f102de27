"""The answer's own arithmetic, looked at once more before it is printed: what cannot be is corrected or dropped, and a note says so.

Each check holds for any answer, whatever rule wrote it: a gain is a range within the time that there is, a probability lies between
0 and 1, what leads is not less likely than what stands below it, a quoted line stands where its number says, and a cause that the
facts exclude by definition (one process, one node, no throttle reason active) is no finding.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from stallwise.doctor.findings.diagnosis import SOMETHING_ELSE, Diagnosis, Hypothesis
from stallwise.doctor.findings.finding import Finding, Gain, Reason
from stallwise.doctor.findings.rule import Rule
from stallwise.doctor.recognise.features import clue_outcomes
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Note, Source
from stallwise.evidence.ledger import Ledger

ROUNDING = 1.001  # what sums of many steps differ by
CHECKED_BYTES = 1 << 20  # of a text whose line numbers are looked up again
QUOTED = 40  # characters of a quote that are looked for: longer ones are cut
_QUOTE = re.compile("\u201c([^\u201d]{8,})\u201d")
_LINE = re.compile(r"line (\d{1,9})")


def without_excluded(findings: Sequence[Finding], rules: Sequence[Rule], evidence: Evidence) -> list[Finding]:
    """What provers saw, but for causes that the evidence excludes by definition."""
    by_cause = {rule.cause: rule for rule in rules}
    kept = []
    for finding in findings:
        rule = by_cause.get(finding.cause) if finding.scope.kernel is None else None
        says = next((c.says for c, held, _ in clue_outcomes(rule, evidence) if c.rules_out(held)), "") if rule else ""
        if says:
            evidence.notes.append(Note(f"{finding.cause} is left out: {says} decides against it", Source("")))
        else:
            kept.append(finding)
    return kept


def self_checked(diagnosis: Diagnosis) -> Diagnosis:
    """The same answer, with what contradicts itself put right."""
    notes: list[Note] = []
    lines = _Lines()
    findings = tuple(_finding(f, diagnosis.ledger, lines, notes) for f in diagnosis.findings)
    hypotheses = _ordered([_possible(h) for h in diagnosis.hypotheses], findings)
    return replace(diagnosis, findings=findings, hypotheses=hypotheses, notes=(*diagnosis.notes, *notes))


def _finding(finding: Finding, ledger: Ledger | None, lines: _Lines, notes: list[Note]) -> Finding:
    sure = finding.confidence if math.isfinite(finding.confidence) else 0.0
    gain = _gain(finding.gain, ledger)
    if gain != finding.gain:
        notes.append(Note(f"the gain of {finding.cause} is held to the time that there is", Source("")))
    because = tuple(lines.placed(reason) for reason in finding.because)
    return replace(finding, confidence=min(max(sure, 0.0), 1.0), gain=gain, because=because)


def _gain(gain: Gain | None, ledger: Ledger | None) -> Gain | None:
    """A range of finite seconds, no longer than the step it is won from; none where it is no range."""
    if gain is None:
        return None
    if not all(map(math.isfinite, (gain.low_s, gain.high_s))) or gain.high_s < 0.0:
        return None
    low_s = min(max(gain.low_s, 0.0), gain.high_s)
    likely_s = None if gain.likely_s is None else min(max(gain.likely_s, low_s), gain.high_s)
    gain = gain if (low_s, likely_s) == (gain.low_s, gain.likely_s) else replace(gain, low_s=low_s, likely_s=likely_s)
    whole_s = gain.step_s or (ledger.whole_s if ledger is not None else 0.0)
    return gain.capped(whole_s) if whole_s > 0.0 and gain.high_s > whole_s * ROUNDING else gain


def _possible(hypothesis: Hypothesis) -> Hypothesis:
    share = hypothesis.probability
    return (
        hypothesis
        if 0.0 <= share <= 1.0
        else replace(hypothesis, probability=min(max(share, 0.0), 1.0) if math.isfinite(share) else 0.0)
    )


def _ordered(hypotheses: list[Hypothesis], findings: Sequence[Finding]) -> tuple[Hypothesis, ...]:
    """Recognised causes by their probability; what provers saw keeps its order, for lost time decides it."""
    if findings and not findings[0].recognised:
        return tuple(hypotheses)
    named = sorted((h for h in hypotheses if h.cause != SOMETHING_ELSE), key=lambda h: -h.probability)
    rest = iter(named)
    return tuple(h if h.cause == SOMETHING_ELSE else next(rest) for h in hypotheses)


class _Lines:
    """Lines of the small files that are quoted, read once."""

    def __init__(self) -> None:
        self._of: dict[str, list[str]] = {}

    def placed(self, reason: Reason) -> Reason:
        """A quote with the number of the line it stands in, where exactly one other line holds it."""
        quote, source = _QUOTE.search(reason.text), reason.sources[0] if reason.sources else None
        number = _LINE.fullmatch(source.where) if source is not None else None
        if quote is None or source is None or number is None or len(reason.sources) != 1:
            return reason
        wanted, lines = " ".join(quote[1].split())[:QUOTED], self._lines(source.file)
        if not lines or wanted in " ".join(lines[int(number[1]) - 1 : int(number[1])]):
            return reason
        places = [at for at, line in enumerate(lines, 1) if wanted in line]
        return replace(reason, sources=(replace(source, where=f"line {places[0]}"),)) if len(places) == 1 else reason

    def _lines(self, name: str) -> list[str]:
        if name not in self._of:
            path = Path(name)
            try:
                small = path.is_file() and path.stat().st_size <= CHECKED_BYTES
                text = path.read_text(encoding="utf-8", errors="replace") if small else ""
            except (OSError, ValueError):  # a member of an archive, a pipe, a name that is no path
                text = ""
            self._of[name] = [" ".join(line.split()) for line in text.split("\n")] if text else []
        return self._of[name]
