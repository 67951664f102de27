"""Prove: what measured and stated numbers and messages of certain meaning show, before anything is recognised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stallwise.doctor.findings.finding import Finding, Unknown
from stallwise.doctor.findings.rule import Rule
from stallwise.doctor.findings.trial import TABLE as TRIED
from stallwise.doctor.kernels import kernels_answer, rank_kernels
from stallwise.doctor.rank import rank
from stallwise.doctor.recognise.model import model
from stallwise.doctor.self_check import without_excluded
from stallwise.doctor.thresholds import past_threshold
from stallwise.evidence.catalog import change
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import STATED
from stallwise.evidence.ledger import Ledger
from stallwise.evidence.step_time import run_ledger

CLEAR = 0.8  # a prover this sure has seen its cause
TRUSTED = 0.65  # of counted cases in which the prover spoke: below, what it saw is one feature among others
DOUBTED = 0.3  # below even odds: one feature among others
ANSWERS = 0.6  # provers that say less were right in 17 of 47 cases and the counts in 24; above, in 50 of 70 against 48


@dataclass(frozen=True, slots=True)
class Proved:
    """What the provers found."""

    ledger: Ledger | None
    findings: tuple[Finding, ...]  # of the run, best first
    of_kernels: tuple[Finding, ...]
    kernels_only: bool  # kernels alone are the whole question
    unknown: tuple[Unknown, ...]

    @property
    def measured(self) -> bool:
        """Whether a measured ledger or a kernel's counters decides."""
        return self.kernels_only or (self.ledger is not None and not self.ledger.source.stated and bool(self.findings))

    @property
    def answers(self) -> bool:
        """Whether something measured or a prover of counted reliability decides: words are no matter then."""
        sure = [f for f in self.findings if f.confidence >= ANSWERS and not f.optional and trusted(f)]
        # That a job failed answers nothing where another prover has seen something of why.
        why = any(not f.optional and not f.last_resort for f in self.findings)
        return self.measured or any(not f.last_resort or not why for f in sure)

    def doubted(self) -> Proved:
        """Of a text that reads healthy: what rests on its own words and numbers alone is over, denied or somebody else's."""
        found = tuple(replace(f, confidence=min(f.confidence, DOUBTED)) if _of_a_page(f) else f for f in self.findings)
        return replace(self, findings=found)


def _of_a_page(finding: Finding) -> bool:
    """Whether it rests on what a text says alone; seconds of a step, or a fact given as such (--fact), are meant."""
    given = any(s.file == STATED.file for reason in finding.because for s in reason.sources)
    return finding.basis == "stated" and not finding.category and not given


def trusted(finding: Finding) -> bool:
    """Whether counted cases bear a prover out at this confidence; a comparison of several ranks' files needs no counts."""
    return finding.compared or model().reliability(finding.cause, finding.confidence) >= TRUSTED


def prove(evidence: Evidence, rules: tuple[Rule, ...], verdicts: Sequence[Finding | Unknown]) -> Proved:
    """Puts what every prover said in order."""
    ledger = run_ledger(evidence)
    if ledger is not None:
        from stallwise.doctor.named_by_user import with_names_of_the_user

        ledger = with_names_of_the_user(ledger, evidence)
    found = [v for v in verdicts if isinstance(v, Finding)]
    if ledger is not None or _parts_are_timed(evidence, rules):
        from stallwise.doctor.timed_stages import stage_owners

        found += stage_owners(evidence, rules, found, ledger)
    found = without_excluded(found, rules, evidence)
    if evidence.table(TRIED):
        from stallwise.doctor.measured import join

        found = join(found, evidence)
    findings = rank([f for f in found if f.scope.kernel is None], ledger)
    of_kernels = rank_kernels(found, evidence)
    kernels = kernels_answer(of_kernels, findings, ledger, evidence)
    seen = (*kernels, *findings)
    priced = any(f.scope.kernel is None and f.category for f in seen)
    if not kernels and not priced and not any(f.confidence >= CLEAR and not f.optional for f in seen):
        stuck = {f.cause for f in seen if f.blocking}
        seen = (*(f for f in past_threshold(evidence, rules) if f.cause not in stuck), *seen)
    if not kernels and (ledger is None or ledger.source.stated):  # seconds of a measured ledger keep their order
        seen = tuple(sorted(seen, key=lambda f: not trusted(f)))
    unknown = tuple(v for v in verdicts if isinstance(v, Unknown))
    return Proved(ledger, seen, of_kernels, bool(kernels), unknown)


def _parts_are_timed(evidence: Evidence, rules: tuple[Rule, ...]) -> bool:
    """Whether anybody tells what a stage takes that some cause owns."""
    owned = {q for rule in rules if rule.owns is not None for q in (*rule.owns.parts, *rule.owns.shares)}
    return any(evidence.all(q) for q in (*owned, change.PART_SHARE))
