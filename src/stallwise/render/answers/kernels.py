"""Profiled kernels as a page: the table, the roofline, and for each kernel why and what to do."""

from __future__ import annotations

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.doctor.findings.finding import Finding
from stallwise.render.answers import Block, Grid, Rows, Text, Verdict, page
from stallwise.render.kernels import WORTH_A_LINE, Row, rows_of, short_name, to_text
from stallwise.render.pictures import roofline
from stallwise.units import Unit, show

MOST_EXPLAINED = 24
MOST_REASONS = 4


def to_html(diagnosis: Diagnosis, tuned: list[Finding]) -> str:
    """The whole page; `tuned` speak of a sweep rather than of one kernel."""
    rows = rows_of(diagnosis)
    blocks: list[Block | None] = [_table(rows), roofline.draw(diagnosis)]
    blocks += [Rows(f.headline, [f.summary, *(r.text for r in f.because)]) for f in tuned]
    silent = [f"{short_name(r.name)}: {r.silence.word}: {r.silence.means}" for r in rows if r.silence]
    blocks.append(Rows("Without a finding", silent[:MOST_EXPLAINED]))
    blocks += [_explained(row) for row in rows[:MOST_EXPLAINED] if row.finding and not row.finding.optional]
    if rows:
        blocks.append(Text("The whole answer", to_text(diagnosis)))
    inputs = diagnosis.evidence.inputs
    subject = ", ".join(inputs[:3])
    return page(_verdict(rows, tuned), blocks, verb="kernels", subject=subject, inputs=inputs)


def _verdict(rows: list[Row], tuned: list[Finding]) -> Verdict:
    lost = [r for r in rows if r.stake_s[1] > 0]
    whole_s = sum(r.time_s for r in rows)
    if not lost and tuned:
        return Verdict(tuned[0].headline, tuned[0].summary, "", "bad", f"{len(rows)} kernels")
    if not lost:
        silent = max((r for r in rows if r.silence), key=lambda r: r.time_s, default=None)
        if silent is None or silent.silence is None or silent.time_s < WORTH_A_LINE * whole_s:
            return Verdict("No kernel here has time at stake", "", "", "good", f"{len(rows)} kernels")
        what = f"{short_name(silent.name)}: {silent.silence.word}"
        return Verdict(what, f"{silent.silence.means}.", "", "unclear", f"{len(rows)} kernels")
    low, high = (sum(r.stake_s[end] for r in lost) for end in (0, 1))
    first = lost[0]
    assert first.finding is not None
    fix = first.finding.fixes[0].action if first.finding.fixes else ""
    return Verdict(
        f"{short_name(first.name)}: {first.finding.headline}",
        f"{show(low, Unit.SECOND)} to {show(high, Unit.SECOND)} of {show(whole_s, Unit.SECOND)} are at stake in "
        f"{len(lost)} of {len(rows)} kernels.",
        fix,
        "bad",
        f"{first.finding.cause}, {first.finding.confidence:.0%} sure",
    )


def _table(rows: list[Row]) -> Grid:
    cells = [
        (
            short_name(r.name), show(r.time_s, Unit.SECOND), f"{r.launches}", _stake(r),
            r.answer, f"{r.finding.confidence:.0%}" if r.finding else "",
            ", ".join(f"{word} {share:.0%}" for word, share in r.ceilings.items()),
        )
        for r in rows
    ]  # fmt: skip
    head = ("kernel", "time", "launches", "at stake", "first answer", "sure", "share of each roof")
    return Grid("Kernels, by the time at stake", head, cells, frozenset({1, 2, 3, 5}))


def _stake(row: Row) -> str:
    low, high = row.stake_s
    return f"{show(low, Unit.SECOND)} to {show(high, Unit.SECOND)}" if high else "-"


def _explained(row: Row) -> Rows:
    finding = row.finding
    assert finding is not None
    lines = [f"because {reason.text}" for reason in finding.because[:MOST_REASONS]]
    lines += [f"resident: {row.residency}"] if row.residency else []
    lines += [f"fix: {fix.action}" for fix in finding.fixes[:2]]
    lines += [f"do not start here: {finding.avoid}"] if finding.avoid else []
    return Rows(f"{short_name(row.name)}: {finding.headline}", lines)
