"""Findings and budgets for machines that build: GitHub annotations and summaries, SARIF, JUnit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from stallwise.doctor.findings.budget import Verdict as BudgetVerdict
from stallwise.doctor.findings.diagnosis import Diagnosis, State
from stallwise.doctor.findings.finding import Finding
from stallwise.render.blocks import plain
from stallwise.render.verdict import run_findings, saves, verdict

_CONTROL = re.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")  # not allowed in XML at all


def _sentence(finding: Finding, diagnosis: Diagnosis) -> str:
    parts = [finding.headline, _capital(plain(saves(finding.gain, diagnosis.ledger)))]
    parts += [f"Fix: {finding.fixes[0].action}"] if finding.fixes else []
    return " ".join(p if p.endswith((".", "!", "?")) else f"{p}." for p in parts if p)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def findings_sarif(diagnosis: Diagnosis) -> dict[str, Any]:
    """SARIF 2.1.0 with one result per finding, placed at the artifact it rests on."""
    found = [f for f in diagnosis.findings if f.is_verdict]
    causes = sorted({f.cause for f in found})
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "stallwise", "rules": [{"id": c, "name": c} for c in causes]}},
                "results": [
                    {
                        "ruleId": f.cause,
                        "ruleIndex": causes.index(f.cause),
                        "level": "error" if f.blocking else "warning",
                        "message": {"text": _sentence(f, diagnosis)},
                        "rank": round(100 * f.confidence, 1),
                        "locations": [_location(f, diagnosis)],
                    }
                    for f in found
                ],
            }
        ],
    }


def _location(finding: Finding, diagnosis: Diagnosis) -> dict[str, Any]:
    file, line = _place(finding, diagnosis)
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": file.replace("\\", "/")},
            "region": {"startLine": line},
        }
    }


def _place(finding: Finding, diagnosis: Diagnosis) -> tuple[str, int]:
    if (line := finding.code_line) is not None:
        return line.file, line.line
    source = next((s for r in finding.because for s in r.sources if s.file != "stated"), None)
    if source is None:
        return (diagnosis.evidence.inputs or ["stated"])[0], 1
    number = re.search(r"lines? (\d+)", source.where)
    return source.file, int(number[1]) if number else 1


def findings_junit(diagnosis: Diagnosis) -> str:
    """JUnit XML: every finding is a failed test, a run proven well one that passes, an unclear one is skipped."""
    cases = [
        (f.cause, _sentence(f, diagnosis), "\n".join(r.text for r in f.because), True)
        for f in run_findings(diagnosis)
        if f.is_verdict
    ]
    if diagnosis.state is State.UNCLEAR:
        return _junit("stallwise.diagnose", [("unclear", diagnosis.why_unclear, "", False)], skipped=True)
    return _junit("stallwise.diagnose", cases or [("healthy", "", "", False)])


def budgets_junit(verdicts: Sequence[BudgetVerdict]) -> str:
    """JUnit XML: every budget is a test."""
    return _junit("stallwise.check", [(v.budget.name, v.says, v.source, v.broken) for v in verdicts])


def _junit(suite: str, cases: Sequence[tuple[str, str, str, bool]], *, skipped: bool = False) -> str:
    failed = sum(1 for *_, bad in cases if bad)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuite name={_q(suite)} tests={_q(len(cases))} failures={_q(failed)} skipped={_q(int(skipped))}>",
    ]
    for name, says, detail, bad in cases:
        inside = f"<failure message={_q(says)}>{escape(_CONTROL.sub('', detail))}</failure>" if bad else ""
        inside = f"<skipped message={_q(says)}/>" if skipped else inside
        lines.append(f"  <testcase classname={_q(suite)} name={_q(name)}>{inside}</testcase>")
    return "\n".join([*lines, "</testsuite>", ""])


def _q(value: object) -> str:
    return quoteattr(_CONTROL.sub("", str(value)))


def findings_github(diagnosis: Diagnosis) -> str:
    """Workflow commands, one per finding."""
    lines = []
    for finding in run_findings(diagnosis):
        if not finding.is_verdict:
            continue
        file, line = _place(finding, diagnosis)
        level = "error" if finding.blocking else "warning"
        lines.append(_command(level, _sentence(finding, diagnosis), f"stallwise {finding.cause}", file, line))
    if diagnosis.state is State.UNCLEAR:
        first_line = verdict(diagnosis)
        file = (diagnosis.evidence.inputs or ["stated"])[0]
        lines.append(
            _command(
                "notice",
                " ".join(plain(p) for p in (first_line.what, first_line.do) if p),
                "stallwise cannot tell",
                file,
                1,
            )
        )
    return "\n".join(lines)


def budgets_github(verdicts: Sequence[BudgetVerdict], file: str) -> str:
    """Workflow commands, one per broken budget, at its line of the settings."""
    return "\n".join(
        _command("error", v.says, f"stallwise budget {v.budget.name}", file, v.budget.line)
        for v in verdicts
        if v.broken
    )


def _command(level: str, message: str, title: str, file: str, line: int) -> str:
    def value(text: str) -> str:
        return _data(text).replace(":", "%3A").replace(",", "%2C")

    return f"::{level} file={value(file)},line={line},title={value(title)}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def budgets_markdown(verdicts: Sequence[BudgetVerdict]) -> str:
    """A table for the step summary."""
    from stallwise.render.documents.budgets import word
    from stallwise.render.markdown import escaped

    lines = ["| budget | limit | seen | |", "|---|---:|---:|---|"]
    for v in verdicts:
        lines.append(
            f"| {escaped(v.budget.name)} | {escaped(v.budget.text)} | {escaped(v.seen_text)} | **{word(v)}** |"
        )
    return "\n".join([*lines, ""])
