"""Findings about kernels: ranked within each, kernels by time at stake, and when they speak for the run."""

from __future__ import annotations

from dataclasses import replace

from stallwise.doctor.findings.finding import Finding
from stallwise.doctor.rank import SURE_ENOUGH, rank
from stallwise.evidence.catalog.kernel import TIME, TOTAL_TIME
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import WHOLE, Fact
from stallwise.evidence.ledger import Category, Ledger

WORTH_A_HEADLINE = 0.05  # of all profiled time: less than this is offered, never the answer


def rank_kernels(findings: list[Finding], evidence: Evidence) -> tuple[Finding, ...]:
    """Findings of each kernel best first, the kernel with most time at stake first."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.scope.kernel is not None:
            groups.setdefault(finding.scope.kernel, []).append(finding)
    ranked = [rank(members, _ledger(name, evidence)) for name, members in groups.items()]
    ranked.sort(key=lambda members: at_stake_s(members[0]), reverse=True)
    return tuple(f for members in ranked for f in members)


def at_stake_s(finding: Finding) -> float:
    """Seconds that acting on the finding is expected to win; what is merely offered has nothing at stake."""
    if finding.gain is None or finding.optional:
        return 0.0
    return finding.confidence * finding.gain.middle_s


def kernels_answer(
    ranked: tuple[Finding, ...], run: tuple[Finding, ...], ledger: Ledger | None, evidence: Evidence
) -> tuple[Finding, ...]:
    """Where only kernels were looked at, the run's answer is theirs: the kernel with most time at stake leads."""
    if ledger is not None or any(f.confidence >= SURE_ENOUGH for f in run):
        return ()
    first: dict[str, Finding] = {}
    for finding in ranked:
        if finding.scope.kernel is not None:
            first.setdefault(finding.scope.kernel, finding)
    whole_s = sum(_time_s(name, evidence) for name in _kernels(evidence))
    leaders = sorted(first.values(), key=at_stake_s, reverse=True)
    rest = sorted((f for f in ranked if f not in leaders), key=at_stake_s, reverse=True)
    seen: set[str] = set()
    found = []
    for finding in (*leaders, *rest):
        if finding.cause not in seen:
            seen.add(finding.cause)
            small = bool(whole_s) and finding.gain is not None and at_stake_s(finding) < WORTH_A_HEADLINE * whole_s
            head = f"{_short(finding)}: {finding.headline}"
            found.append(replace(finding, headline=head, scope=WHOLE, optional=finding.optional or small))
    return tuple(found)


def _kernels(evidence: Evidence) -> list[str]:
    return list(dict.fromkeys(s.kernel for s in evidence.scopes("kernel") if s.kernel is not None))


def _short(finding: Finding) -> str:
    name = (finding.scope.kernel or "").split("(", 1)[0].strip()
    return name if len(name) <= 48 else f"{name[:45]}..."


def _ledger(kernel: str, evidence: Evidence) -> Ledger | None:
    """The kernel's own time, so that gains weigh as parts of it."""
    fact = _time(kernel, evidence)
    if fact is None or fact.number <= 0:
        return None
    return Ledger({Category.COMPUTE: fact.number}, fact.source, fact.scope, unit="kernel")


def _time(kernel: str, evidence: Evidence) -> Fact | None:
    """All launches together where counted, else one launch."""
    mine = [f for q in (TOTAL_TIME, TIME) for f in evidence.all(q) if f.scope.kernel == kernel]
    return mine[0] if mine else None


def _time_s(kernel: str, evidence: Evidence) -> float:
    fact = _time(kernel, evidence)
    return fact.number if fact is not None else 0.0
