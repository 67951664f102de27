"""The diagnosis as Markdown, for issues and reports."""

from __future__ import annotations

from stallwise.evidence.ledger import Ledger
from stallwise.findings.diagnosis import Diagnosis
from stallwise.findings.finding import Finding, Reason
from stallwise.render.phrases import an, fix_worth, place, places, worth
from stallwise.units import Unit, show


def to_markdown(diagnosis: Diagnosis) -> str:
    """The whole report."""
    run = [f for f in diagnosis.findings if f.scope.kernel is None]
    first = run[0] if run and not diagnosis.healthy else None
    lines = [f"# {first.headline if first else 'Healthy: nothing worth fixing was found.'}", "", diagnosis.subject, ""]
    if diagnosis.ledger:
        lines += _ledger(diagnosis.ledger)
    for number, finding in enumerate(run, 1):
        lines += _finding(number, finding, diagnosis.ledger)
    if diagnosis.hypotheses and first is None and not diagnosis.healthy:
        lines += ["## Could be", "", *(f"- {h.probability:.0%} {h.cause}" for h in diagnosis.hypotheses[:8]), ""]
    if diagnosis.contradictions:
        lines += ["## Cannot be true", "", *(f"- {r.text}" for r in diagnosis.contradictions), ""]
    if diagnosis.next:
        lines += ["## Next", ""]
        lines += [f"- {n.capture.artifact}: `{n.capture.command}`" for n in diagnosis.next]
        lines += [""]
    if diagnosis.notes:
        lines += ["## Notes", "", *(f"- {n.text} ({place(n.source)})" for n in diagnosis.notes), ""]
    return "\n".join(lines).rstrip() + "\n"


def _ledger(ledger: Ledger) -> list[str]:
    rows = [f"## Where {an(ledger.unit)} goes", "", "| account | time | share |", "|---|---:|---:|"]
    for account, seconds in sorted(ledger.seconds.items(), key=lambda item: -item[1]):
        rows.append(f"| {account.value} | {show(seconds, Unit.SECOND)} | {ledger.share(account):.1%} |")
    rows.append(f"| **whole** | {show(ledger.whole_s, Unit.SECOND)} | 100% |")
    return [*rows, ""]


def _finding(number: int, finding: Finding, ledger: Ledger | None) -> list[str]:
    kind = ", optional" if finding.optional else ""
    lines = [f"## {number}. {finding.cause} ({finding.confidence:.0%} sure{kind})", "", finding.headline]
    if finding.gain:
        lines += ["", f"Worth {worth(finding.gain, ledger)}: {finding.gain.basis}."]
    if finding.summary:
        lines += ["", finding.summary]
    lines += _reasons("Because", finding.because) + _reasons("Against", finding.against)
    if finding.fixes:
        lines += ["", "| | fix | worth | costs | risk |", "|---|---|---|---|---|"]
        for place_in_order, fix in enumerate(finding.fixes, 1):
            lines.append(f"| {place_in_order} | {fix.action} | {fix_worth(fix)} | {fix.cost} | {fix.risk} |")
    lines += _reasons("Looks bad, is not", finding.not_here)
    if finding.avoid:
        lines += ["", f"**Do not start here:** {finding.avoid}"]
    return [*lines, ""]


def _reasons(title: str, reasons: tuple[Reason, ...]) -> list[str]:
    if not reasons:
        return []
    rows = [f"- {r.text}" + (f" ({places(r.sources)})" if r.sources else "") for r in reasons]
    return ["", f"**{title}:**", "", *rows]
