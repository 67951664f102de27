"""What the job's own script says about a finding: remarks of lint that name the same cause join the answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.evidence.catalog import job
from stallwise.evidence.fact import Source
from stallwise.evidence.user_lines import CodeLine
from stallwise.lint import lint
from stallwise.lint.remark import Remark

LARGEST_BYTES = 1 << 20  # a training script is smaller


def with_remarks(diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis with lines of the recorded script, where that lies here and has a remark on a cause that was found."""
    fact = diagnosis.evidence.get(job.SCRIPT)
    path = Path(str(fact.value)) if fact is not None else None
    if path is None or not path.is_file() or path.stat().st_size > LARGEST_BYTES:
        return diagnosis
    try:
        remarks = lint(path.read_text(encoding="utf-8"), str(path))
    except (OSError, ValueError, SyntaxError, RecursionError):
        return diagnosis
    return replace(diagnosis, findings=tuple(_joined(f, remarks) for f in diagnosis.findings))


def _joined(finding: Finding, remarks: list[Remark]) -> Finding:
    of_cause = [r for r in remarks if r.cause == finding.cause]
    if not of_cause:
        return finding
    first = of_cause[0]
    line = CodeLine(first.file, first.line, "", None)
    reasons = tuple(Reason(r.message, (Source(r.file, f"line {r.line}"),)) for r in of_cause)
    fixes = finding.fixes
    if fixes and line.place not in fixes[0].action:
        fixes = (Fix(f"{line.place}: {first.fix}", finding.gain), *fixes)
    headline = finding.headline
    if finding.code_line is None and line.place not in headline:
        headline = f"{headline.removesuffix('.')}; {line.place}: {first.message}."
    return replace(
        finding,
        headline=headline,
        code_line=finding.code_line or line,
        because=(*reasons, *finding.because),
        fixes=fixes,
    )
