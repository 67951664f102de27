"""Profiled kernels: the one with most time at stake first, and for each why and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.doctor.findings.finding import Finding
from stallwise.doctor.findings.without_finding import WithoutFinding, without_finding
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Evidence
from stallwise.render.blocks import (
    Block,
    Column,
    Document,
    Facts,
    Group,
    Verdict,
    Words,
    count,
    joined,
    number,
    seconds,
    seconds_range,
    share,
    steps,
    table,
)
from stallwise.render.blocks import document as filled
from stallwise.render.pictures import roofline

NAME_WIDTH = 44
WORTH_A_LINE = 0.05  # of all profiled time: a kernel without a finding that takes less is left to its row
LATENCY = "latency-bound-low-occupancy"
MOST_EXPLAINED = 24
MOST_REASONS = 3


def document(diagnosis: Diagnosis, tuned: list[Finding], *, wide: bool = False, deep: bool = False) -> Document:
    """The table, and for each kernel with something at stake its evidence and first fix; `tuned` speak of a sweep."""
    rows = rows_of(diagnosis)
    whole_s = sum(row.time_s for row in rows)
    return filled(
        _verdict(rows, tuned),
        _table(rows),
        roofline.draw(diagnosis) if deep else None,
        *(Group(_swept(f), title=f.headline) for f in tuned),
        *(_explained(row, wide, deep) for row in rows[:MOST_EXPLAINED]),
        Facts(
            _without(rows, 0.0 if wide or deep else WORTH_A_LINE * whole_s)[:MOST_EXPLAINED], title="Without a finding"
        ),
        verb="kernels",
        subject=", ".join(diagnosis.evidence.inputs[:3]),
        inputs=tuple(diagnosis.evidence.inputs),
    )


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
    return f"{blocks:.0f} block(s) per SM, limited by {limiter}; more occupancy would {'' if helps else 'not '}help"


def _verdict(rows: list[Row], tuned: list[Finding]) -> Verdict:
    lost = [r for r in rows if r.stake_s[1] > 0]
    whole_s = sum(r.time_s for r in rows)
    tail = f"{len(rows)} kernels"
    if not lost and tuned:
        return Verdict(tuned[0].headline, tuned[0].summary, "", "bad", tail)
    if not lost:
        silent = max((r for r in rows if r.silence), key=lambda r: r.time_s, default=None)
        if silent is None or silent.silence is None or silent.time_s < WORTH_A_LINE * whole_s:
            return Verdict("No kernel here has time at stake", "", "", "good", tail)
        return Verdict(f"{short_name(silent.name)}: {silent.silence.word}", "", "", "unclear", tail)
    low, high = (sum(r.stake_s[end] for r in lost) for end in (0, 1))
    first = lost[0]
    assert first.finding is not None
    why = (seconds_range(low, high), " of ", seconds(whole_s), f" are at stake in {len(lost)} of {len(rows)} kernels.")
    return Verdict(
        f"{short_name(first.name)}: {first.finding.headline}", why, "", "bad",
        (f"{first.finding.cause}, ", share(first.finding.confidence), " sure"),
    )  # fmt: skip


def _table(rows: list[Row]) -> Block:
    cells = (
        (
            short_name(r.name), seconds(r.time_s), count(r.launches), seconds_range(*r.stake_s) if r.stake_s[1] else "-",
            r.answer, share(r.finding.confidence) if r.finding else "",
            joined(((f"{word} ", share(part)) for word, part in r.ceilings.items()), " "),
        )
        for r in rows
    )  # fmt: skip
    head = (Column("kernel"), number("time"), number("launches", 4), number("at stake"), Column("first answer"),
            number("sure", 1), Column("share of each ceiling", 2))  # fmt: skip
    return table("", head, cells)


def _swept(finding: Finding) -> tuple[Block, ...]:
    return (steps("", [finding.summary]), steps("", (r.text for r in finding.because), label="why"))


def _explained(row: Row, wide: bool, deep: bool) -> Group | None:
    """Why and what to do, for a kernel with something at stake."""
    finding = row.finding
    if finding is None or (finding.optional and not (wide or deep)):
        return None
    return Group(
        (
            steps("", (reason.text for reason in finding.because[:MOST_REASONS]), label="why"),
            steps("", [row.residency], label="fits"),
            steps("", (fix.action for fix in finding.fixes[:1]), label="fix"),
            steps("", [finding.avoid], label="avoid"),
        ),
        title=f"{short_name(row.name)}: {finding.headline}",
    )


def _without(rows: list[Row], least_s: float) -> tuple[tuple[str, Words], ...]:
    """What no finding means for the kernels that take that long; never that they are healthy."""
    return tuple(
        (short_name(r.name), f"{r.silence.word}: {r.silence.means}.") for r in rows if r.silence and r.time_s >= least_s
    )


def short_name(name: str) -> str:
    plain = name.split("(", 1)[0].strip() if "[" not in name else name
    plain = plain.removeprefix("void ")
    return plain if len(plain) <= NAME_WIDTH else f"{plain[: NAME_WIDTH - 3]}..."
