"""Profiled kernels as a table: the one with most time at stake first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.doctor.findings.finding import Finding
from stallwise.doctor.findings.without_finding import WithoutFinding, without_finding
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Evidence
from stallwise.render.visible import visible
from stallwise.units import Unit, show

NAME_WIDTH = 44
WORTH_A_LINE = 0.05  # of all profiled time: a kernel without a finding that takes less is left to its row
LATENCY = "latency-bound-low-occupancy"


@dataclass(frozen=True, slots=True)
class Row:
    """One kernel of the table."""

    name: str
    time_s: float
    launches: int
    finding: Finding | None
    ceilings: dict[str, float]
    vendor: str
    residency: str  # what limits occupancy, and whether more of it would help
    silence: WithoutFinding | None = None  # where there is no finding: what its counters say instead

    @property
    def answer(self) -> str:
        """The cause, or what no finding means; never that the kernel is healthy."""
        return self.finding.cause if self.finding else self.silence.word if self.silence else ""

    @property
    def stake_s(self) -> tuple[float, float]:
        """What fixing it would win, as a range."""
        if self.finding is None or self.finding.gain is None or self.finding.optional:
            return (0.0, 0.0)
        return (self.finding.gain.low_s, self.finding.gain.high_s)


def rows_of(diagnosis: Diagnosis) -> list[Row]:
    """Kernels by time at stake, then by time."""
    first: dict[str, Finding] = {}
    for finding in diagnosis.findings:
        if finding.scope.kernel is not None:
            first.setdefault(finding.scope.kernel, finding)
    evidence = diagnosis.evidence
    names = dict.fromkeys(s.kernel for s in evidence.scopes("kernel") if s.kernel)
    rows = [_row(evidence, name, first.get(name)) for name in names]
    return sorted(rows, key=lambda r: (r.stake_s[0] + r.stake_s[1], r.time_s), reverse=True)


def _row(evidence: Evidence, name: str, finding: Finding | None) -> Row:
    def value(quantity: Any) -> float:
        return evidence.value(quantity, kernel=name)

    total = evidence.get(k.TOTAL_TIME, kernel=name) or evidence.get(k.TIME, kernel=name)
    ceilings = {word: value(q) for word, q in (("tensor", k.TENSOR_SHARE), ("FMA", k.FMA_SHARE), ("DRAM", k.DRAM_SHARE),
                                            ("L1", k.L1_SHARE), ("occupancy", k.ACHIEVED_OCCUPANCY))}  # fmt: skip
    return Row(
        name, total.number if total else 0.0, total.samples if total else 1, finding,
        {word: share for word, share in ceilings.items() if share == share}, evidence.text(k.VENDOR_RULE, kernel=name),
        _residency(evidence, name, finding), None if finding else without_finding(evidence, name),
    )  # fmt: skip


def _residency(evidence: Evidence, name: str, finding: Finding | None) -> str:
    limiter, blocks = evidence.text(k.OCCUPANCY_LIMITER, kernel=name), evidence.value(k.BLOCKS_PER_SM, kernel=name)
    if not limiter or blocks != blocks:
        return ""
    helps = finding is not None and finding.cause == LATENCY
    return f"{blocks:.0f} block(s) an SM, limited by {limiter}; more occupancy would {'' if helps else 'not '}help"


def to_text(diagnosis: Diagnosis, *, wide: bool = False) -> str:
    """The table, and below it one line of evidence and the first fix for each kernel that has something at stake."""
    rows = rows_of(diagnosis)
    whole_s = sum(row.time_s for row in rows)
    wide_name = max([len("kernel"), *(len(short_name(row.name)) for row in rows)])
    wide_cause = max([len("first answer"), *(len(row.answer) for row in rows)])
    lines = [f"{'kernel':{wide_name}s} {'time':>9s} {'at stake':>19s}  {'first answer':{wide_cause}s} sure  roofs"]
    for row in rows:
        low, high = row.stake_s
        stake = f"{show(low, Unit.SECOND)} - {show(high, Unit.SECOND)}" if high else "-"
        sure = f"{row.finding.confidence:.0%}" if row.finding else ""
        ceilings = " ".join(f"{word} {share:.0%}" for word, share in row.ceilings.items())
        lines.append(
            f"{short_name(row.name):{wide_name}s} {show(row.time_s, Unit.SECOND):>9s} {stake:>19s}  {row.answer:{wide_cause}s} "
            f"{sure:4s}  {ceilings}"
        )
    for row in rows:
        finding = row.finding
        if finding is None and row.silence is not None and (wide or row.time_s >= WORTH_A_LINE * whole_s):
            lines += ["", f"{short_name(row.name)}: {row.silence.word}: {row.silence.means}."]
        if finding is None or (finding.optional and not wide):
            continue
        lines += ["", f"{short_name(row.name)}: {finding.headline}"]
        lines += [f"  because  {reason.text}" for reason in finding.because[:3]]
        if row.residency:
            lines.append(f"  resident {row.residency}")
        if finding.fixes:
            lines.append(f"  fix      {finding.fixes[0].action}")
        if finding.avoid:
            lines.append(f"  not this {finding.avoid}")
    return visible("\n".join(lines))


def short_name(name: str) -> str:
    plain = name.split("(", 1)[0].strip() if "[" not in name else name
    plain = plain.removeprefix("void ")
    return plain if len(plain) <= NAME_WIDTH else f"{plain[: NAME_WIDTH - 3]}..."


def tuned_text(finding: Finding) -> str:
    """A finding about a sweep, below the kernels."""
    return "\n".join(
        [f"\n{finding.headline}\n  {finding.summary}".rstrip(), *(f"  because  {r.text}" for r in finding.because)]
    )
