"""The diagnosis as Markdown, for issues, pull requests and step summaries."""

from __future__ import annotations

import re

from stallwise.doctor.findings.diagnosis import Diagnosis, State
from stallwise.doctor.findings.finding import Finding, Reason
from stallwise.render.phrases import an, category_ends, fix_worth, named_by_user, places, rival_row
from stallwise.render.verdict import (
    CATEGORY_MEANING,
    could_be,
    how_they_add_up,
    kernel_findings,
    leading_hypothesis,
    not_understood_rows,
    proof_rows,
    question_rows,
    run_findings,
    unexplained_rows,
    verdict,
    worth_text,
)
from stallwise.units import Unit, show

BAR_CELLS = 24
MOST_OTHERS = 8
MOST_CAUSES = 8
MOST_KERNELS = 20
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~])")


def to_markdown(diagnosis: Diagnosis) -> str:
    """The whole report; nothing from the input is taken as markup."""
    answer = verdict(diagnosis)
    lines = [f"# {plain(answer.line)}", ""]
    for part in (answer.why, f"**{plain(answer.do)}**" if answer.do else "", answer.tail and f"*{plain(answer.tail)}*"):
        if part:
            lines += [part if part.startswith("*") else plain(part), ""]
    lines += _ledger(diagnosis)
    run = run_findings(diagnosis)
    lines += _listed("Not explained", [plain(row) for row in unexplained_rows(diagnosis)])
    argued = bool(run) and (diagnosis.state is State.SICK or leading_hypothesis(diagnosis) is run[0])
    if argued:
        lines += _proof(run[0])
    if proof_rows(diagnosis):
        lines += _listed("Shown to be well" if diagnosis.healthy else "Seen", [plain(r) for r in proof_rows(diagnosis)])
    if diagnosis.healthy and diagnosis.limit:
        lines += _listed("To go faster", [plain(f"{f.action}: {f.worth}") for f in diagnosis.limit.levers])
    if diagnosis.state is State.UNCLEAR:
        lines += _listed("Not understood", [plain(row) for row in not_understood_rows(diagnosis)])
    lines += _others(diagnosis, run[1:] if argued else run)
    lines += _kernels(diagnosis)
    lines += _hypotheses(diagnosis)
    for question in diagnosis.questions if diagnosis.state is State.UNCLEAR else ():
        lines += _listed("One question", [plain(row) for row in question_rows(question)])
    lines += _listed("Contradiction", [_cited(r) for r in diagnosis.contradictions])
    for number, step in enumerate(diagnosis.next):
        lines += ["## Capture next", ""] if number == 0 else []
        lines += [f"{plain(step.capture.artifact)}:", "", *_code(step.capture.command), ""]
    lines += _listed("Notes", [f"{plain(n.text)} ({plain(str(n.source))})" for n in diagnosis.notes])
    read = ", ".join(plain(i) for i in diagnosis.evidence.inputs) or "stated facts"
    return "\n".join([*lines, f"<sub>{plain(diagnosis.subject)}; read: {read}</sub>", ""])


def plain(text: str) -> str:
    """Words that Markdown and HTML take as words."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split())).replace("\\<", "&lt;").replace("\\>", "&gt;")


def _code(text: str) -> list[str]:
    fence = "`" * max(3, max((len(m) + 1 for m in re.findall("`+", text)), default=3))
    return [f"{fence}sh", text, fence]


def _ledger(diagnosis: Diagnosis) -> list[str]:
    ledger = diagnosis.ledger
    if ledger is None or not ledger.whole_s:
        return []
    lines = [
        f"## Where {an(ledger.unit)} goes: {show(ledger.whole_s, Unit.SECOND)}", "",
        "| account | | seconds | share | what it is |", "|---|---|---:|---:|---|",
    ]  # fmt: skip
    for category, seconds in sorted(ledger.seconds.items(), key=lambda item: -item[1]):
        share = seconds / ledger.whole_s
        if share >= 0.0005:
            bar = "█" * max(1, round(BAR_CELLS * share))
            about = category_ends(ledger, category)
            text = f"{show(seconds, Unit.SECOND)} ({about})" if about else show(seconds, Unit.SECOND)
            row = (category.value, bar, text, show(share, Unit.SHARE), CATEGORY_MEANING[category])
            lines.append(f"| {' | '.join(row)} |")
    source = f"Mean of {ledger.samples} {ledger.unit}s, {ledger.source}."
    named = [f"- {plain(row)}" for row in named_by_user(ledger)]
    return [*lines, "", plain(source), "", *(["Your spans and gauges:", "", *named, ""] if named else [])]


def _proof(finding: Finding) -> list[str]:
    lines = _listed("Because", [_cited(r) for r in finding.because])
    lines += _listed("Against", [_cited(r) for r in finding.against])
    if finding.fixes:
        lines += ["## Fix, in this order", "", "| | do this | wins | costs | risk |", "|---:|---|---|---|---|"]
        for number, fix in enumerate(finding.fixes, 1):
            cells = (plain(fix.action), plain(fix_worth(fix)), plain(fix.cost), plain(fix.risk))
            lines.append(f"| {number} | {' | '.join(cells)} |")
        lines.append("")
    lines += _listed("Not the cause", [_cited(r) for r in finding.not_here])
    if finding.avoid:
        lines += [f"> **Do not start here.** {plain(finding.avoid)}", ""]
    lines += _listed("If it is not that", [plain(rival_row(r)) for r in finding.rivals])
    if finding.overturn:
        lines += [f"> **Would change this.** {plain('; '.join(finding.overturn))}", ""]
    return lines


def _others(diagnosis: Diagnosis, rest: list[Finding]) -> list[str]:
    rows = []
    for finding in rest[:MOST_OTHERS]:
        gain = worth_text(finding.gain, diagnosis.ledger)
        tail = ", ".join(t for t in (finding.cause, f"{finding.confidence:.0%} sure", gain) if t)
        fix = f" Fix: {plain(finding.fixes[0].action)}." if finding.fixes else ""
        rows.append(f"**{plain(finding.headline)}** ({plain(tail)}){fix}")
    return _listed("Also seen", rows)


def _kernels(diagnosis: Diagnosis) -> list[str]:
    rows = [
        f"{plain(name)}: {'; '.join(plain(f'{f.headline} ({f.cause}, {f.confidence:.0%})') for f in found)}"
        for name, found in list(kernel_findings(diagnosis).items())[:MOST_KERNELS]
    ]
    return _listed("Kernels", rows)


def _hypotheses(diagnosis: Diagnosis) -> list[str]:
    if not diagnosis.hypotheses:
        return []
    lines = ["## What it could be", "", "| cause | probability | for | against |", "|---|---:|---|---|"]
    for h in could_be(diagnosis, MOST_CAUSES):
        for_, against = ("; ".join(plain(r.text) for r in rs[:3]) for rs in (h.because, h.against))
        lines.append(f"| {plain(h.cause)} | {h.probability:.0%} | {for_} | {against} |")
    return [*lines, "", how_they_add_up(diagnosis), ""]


def _listed(title: str, rows: list[str]) -> list[str]:
    return [f"## {title}", "", *(f"- {row}" for row in rows), ""] if rows else []


def _cited(reason: Reason) -> str:
    where = places(reason.sources)
    return plain(reason.text) + (f" ({plain(where)})" if where else "")
