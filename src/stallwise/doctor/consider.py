"""What the evidence itself says, before anything is suspected: verdicts of the rules, the ledger, and the table they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stallwise.doctor.decisive import decisive
from stallwise.doctor.differential import CLEAR, SOMETHING_ELSE, differential
from stallwise.doctor.kernels import rank_kernels, speaking_for_run
from stallwise.doctor.measured import join
from stallwise.doctor.named_by_user import with_names_of_the_user
from stallwise.doctor.owners import owners
from stallwise.doctor.rank import SURE_ENOUGH, rank
from stallwise.doctor.suspects import rests_on_words
from stallwise.doctor.symptoms import Complaint, complaints
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Ledger
from stallwise.evidence.step_time import run_ledger
from stallwise.findings.diagnosis import Hypothesis
from stallwise.findings.finding import Finding, Unknown
from stallwise.findings.rule import Rule


@dataclass(frozen=True, slots=True)
class Considered:
    """All that rules and clues have to say."""

    ledger: Ledger | None
    seen: tuple[Finding, ...]  # of the run, best first
    of_kernels: tuple[Finding, ...]
    kernels_speak: bool  # kernels alone are the whole question
    unknown: tuple[Unknown, ...]
    heard: tuple[Complaint, ...]
    table: tuple[Hypothesis, ...]

    @property
    def proved(self) -> bool:
        """A ledger, a kernel's counters or a clear sign decides; what words resemble is no matter then."""
        clear = _clear(self.table)
        timed = self.ledger is not None and not self.ledger.source.stated and bool(self.seen)
        return timed or self.kernels_speak or clear


def consider(evidence: Evidence, rules: tuple[Rule, ...], verdicts: Sequence[Finding | Unknown]) -> Considered:
    """Puts what every rule said in order and weighs every clue of measured evidence."""
    ledger = with_names_of_the_user(run_ledger(evidence), evidence)
    found = _left_to_judge([v for v in verdicts if isinstance(v, Finding)], rules, evidence)
    found += owners(evidence, rules, found, ledger)
    found = join(found, evidence)
    unknown = tuple(v for v in verdicts if isinstance(v, Unknown))
    findings = rank([f for f in found if f.scope.kernel is None], ledger)
    kernel_findings = rank_kernels(found, evidence)
    spoken = speaking_for_run(kernel_findings, findings, ledger, evidence)
    seen = (*spoken, *findings)
    spoke = {f.cause for f in found} | {u.cause for u in unknown}
    silent = frozenset(r.cause for r in rules if r.needs and r.per is None and r.cause not in spoke)
    table, heard = differential(evidence, rules, seen, silent, priced=ledger is not None)
    if not spoken and not _clear(table) and not any(f.scope.kernel is None and f.account for f in seen):
        carried = any(h.probability >= SURE_ENOUGH and not h.by_rate_alone and h.cause != SOMETHING_ELSE for h in table)
        speaking = decisive(evidence, rules, carried=carried)
        told = tuple(f for f in speaking if not any(f.cause == s.cause for s in seen if s.blocking))
        if told:
            seen = (*told, *seen)
            table, heard = differential(evidence, rules, seen, silent, priced=ledger is not None)
    return Considered(ledger, seen, kernel_findings, bool(spoken), unknown, heard, table)


def _clear(table: tuple[Hypothesis, ...]) -> bool:
    return any(h.probability >= CLEAR for h in table if h.cause != SOMETHING_ELSE)


def _left_to_judge(found: list[Finding], rules: tuple[Rule, ...], evidence: Evidence) -> list[Finding]:
    """A complaint with stated numbers is for the differential, which hears all of it; rules judge what was measured."""
    if not complaints(evidence):
        return found
    advised = {r.cause for r in rules if r.advise is not None}
    return [f for f in found if not (f.cause in advised and rests_on_words(f))]
