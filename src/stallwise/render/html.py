"""The diagnosis as one HTML file."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from stallwise.doctor.findings.diagnosis import Diagnosis, State
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.evidence.fact import Fact
from stallwise.evidence.ledger import Ledger
from stallwise.render.document import document
from stallwise.render.phrases import an, category_ends, fix_worth, named_by_user, place, rival_row
from stallwise.render.pictures import figures
from stallwise.render.pictures._categories import CLASS, guilty
from stallwise.render.sliders import SLIDERS, sliders_parts
from stallwise.render.svg import box, line
from stallwise.render.tables import TABLES, tables_parts
from stallwise.render.timeline import TIMELINE, timeline_parts
from stallwise.render.verdict import (
    CATEGORY_MEANING,
    could_be,
    how_they_add_up,
    kernel_findings,
    leading_hypothesis,
    not_understood_rows,
    proof_rows,
    run_findings,
    unexplained_rows,
    verdict,
    worth_text,
)
from stallwise.units import Unit, show

BAR_WIDTH, BAR_HEIGHT = 400, 18
SEEN_SHARE = 0.0005  # of the whole: a smaller account is not worth a row
MOST_FACTS = 250
MOST_KERNELS = 40
MOST_HYPOTHESES = 10
SOURCES_SHOWN = 3


def to_html(diagnosis: Diagnosis) -> str:
    """The whole page."""
    timeline = timeline_parts(diagnosis)
    return document(
        "report.html",
        {TIMELINE: timeline, SLIDERS: sliders_parts(diagnosis), TABLES: tables_parts(diagnosis)},
        **context(diagnosis, timeline["jumps"] if timeline else {}),
    )


def context(diagnosis: Diagnosis, proved: dict[int, tuple[int, int]]) -> dict[str, Any]:
    """What the template lays out; `proved` says where the timeline shows what a finding rests on."""
    run = run_findings(diagnosis)
    kernels = kernel_findings(diagnosis)
    facts = [f for found in diagnosis.evidence.facts.values() for f in found]
    facts.sort(key=lambda f: (f.scope.kernel is not None, f.quantity.name, str(f.scope)))
    ledger = diagnosis.ledger
    shown = [{**_finding(f, ledger), "jump": proved.get(id(f))} for f in run]
    argued = bool(run) and (diagnosis.state is State.SICK or leading_hypothesis(diagnosis) is run[0])
    return {
        "verb": "",
        "subject": diagnosis.subject,
        "inputs": diagnosis.evidence.inputs or ["stated facts"],
        "state": diagnosis.state.value,
        "argued": argued,
        "verdict": verdict(diagnosis),
        "proofs": proof_rows(diagnosis),
        "levers": [_fix(f) for f in diagnosis.limit.levers] if diagnosis.healthy and diagnosis.limit else [],
        "unexplained": unexplained_rows(diagnosis),
        "not_understood": not_understood_rows(diagnosis) if diagnosis.state is State.UNCLEAR else [],
        "said_by": _sources(run, diagnosis),
        "ledger": _ledger(diagnosis) if ledger and ledger.whole_s > 0 else None,
        "findings": shown,
        "others": shown[1:] if argued else shown,
        "figures": figures(diagnosis),
        "kernels": [
            {"name": name, "findings": [{**_finding(f, None), "jump": proved.get(id(f))} for f in found]}
            for name, found in list(kernels.items())[:MOST_KERNELS]
        ],
        "all_fixes": _all_fixes(run),
        "add_up": how_they_add_up(diagnosis),
        "hypotheses": [
            {
                "cause": h.cause,
                "probability": f"{h.probability:.0%}",
                "svg": _meter(h.probability),
                "because": [_reason(r) for r in h.because],
                "against": [_reason(r) for r in h.against],
            }
            for h in could_be(diagnosis, MOST_HYPOTHESES)
        ],
        "tree": diagnosis.tree,
        "questions": diagnosis.questions if diagnosis.state is State.UNCLEAR else (),
        "next": [
            {
                "artifact": n.capture.artifact,
                "command": n.capture.command,
                "cost": n.capture.cost,
                "separates": n.separates,
            }
            for n in diagnosis.next
        ],
        "contradictions": [_reason(r) for r in diagnosis.contradictions],
        "notes": diagnosis.notes,
        "facts": [_fact(f) for f in facts[:MOST_FACTS]],
        "left_out": max(0, len(facts) - MOST_FACTS),
    }


def _sources(run: list[Finding], diagnosis: Diagnosis) -> list[str]:
    """Where the verdict's own numbers come from."""
    if diagnosis.healthy:
        reasons = [r for p in diagnosis.proofs if p.whole for r in p.because]
    else:
        reasons = list(run[0].because) if run else []
    sources = [place(s) for r in reasons for s in r.sources]
    return list(dict.fromkeys(sources))[:SOURCES_SHOWN]


def _ledger(diagnosis: Diagnosis) -> dict[str, Any]:
    ledger, found = diagnosis.ledger, guilty(diagnosis)
    assert ledger is not None
    whole = ledger.whole_s
    basis = f"mean of {ledger.samples} {ledger.unit}s, {ledger.source}"
    goal = whole - found.gain.expected_s if found and found.gain and found.gain.expected_s < whole else None
    rows, at = [], 0.0
    for category, seconds in sorted(ledger.seconds.items(), key=lambda item: -item[1]):
        if seconds < SEEN_SHARE * whole:
            continue
        rows.append(
            {
                "word": category.value,
                "svg": _waterfall(
                    at / whole, seconds / whole, CLASS[category.value], goal / whole if goal is not None else None
                ),
                "seconds": show(seconds, Unit.SECOND),
                "ends": category_ends(ledger, category),
                "share": show(seconds / whole, Unit.SHARE),
                "meaning": CATEGORY_MEANING[category],
                "hot": bool(found and found.category is category),
            }
        )
        at += seconds
    after = ""
    if goal is not None and found and found.gain:
        how = "replayed" if found.gain.likely_s is not None else "at best"
        likely, worst = (show(s, Unit.SECOND) for s in (goal, whole - found.gain.low_s))
        after = f"Dashed: where {an(ledger.unit)} would end after the first fix, {how} {likely}" + (
            f" (at worst {worst})." if worst != likely else "."
        )
    return {
        "unit": an(ledger.unit), "whole": show(whole, Unit.SECOND), "basis": basis, "rows": rows, "after": after,
        "named": named_by_user(ledger),
    }  # fmt: skip


def _waterfall(start: float, share: float, kind: str, goal: float | None) -> Markup:
    parts = [box(0, 0, BAR_WIDTH, BAR_HEIGHT, "track"), box(start * BAR_WIDTH, 0, share * BAR_WIDTH, BAR_HEIGHT, kind)]
    if goal is not None:
        parts.append(line(goal * BAR_WIDTH, 0, goal * BAR_WIDTH, BAR_HEIGHT, "after"))
    size = f'viewBox="0 0 {BAR_WIDTH} {BAR_HEIGHT}" preserveAspectRatio="none" height="{BAR_HEIGHT}"'
    return Markup(f'<svg {size} aria-hidden="true">{"".join(parts)}</svg>')


def _meter(share: float) -> Markup:
    parts = [box(0, 0, 80, 6, "track"), box(0, 0, 80 * share, 6, "meter")]
    return Markup(f'<svg viewBox="0 0 80 6" height="6" aria-hidden="true">{"".join(parts)}</svg>')


def _finding(finding: Finding, ledger: Ledger | None) -> dict[str, Any]:
    return {
        "cause": finding.cause,
        "headline": finding.headline,
        "sure": f"{finding.confidence:.0%}",
        "scope": str(finding.scope) if finding.scope.kernel is None else "",
        "optional": finding.optional,
        "worth": worth_text(finding.gain, ledger),
        "summary": finding.summary,
        "because": [_reason(r) for r in finding.because],
        "against": [_reason(r) for r in finding.against],
        "not_here": [_reason(r) for r in finding.not_here],
        "avoid": finding.avoid,
        "rivals": [rival_row(r) for r in finding.rivals],
        "would_change": finding.overturn,
        "fixes": _fixes([finding]),
    }


def _fixes(findings: list[Finding]) -> list[dict[str, Any]]:
    return [_fix(fix) for finding in findings for fix in finding.fixes]


def _fix(fix: Fix) -> dict[str, Any]:
    return {
        "action": fix.action,
        "worth": fix_worth(fix),
        "basis": fix.gain.basis if fix.gain else "",
        "cost": fix.cost,
        "risk": fix.risk,
        "seconds": fix.gain.middle_s if fix.gain else 0.0,
    }


def _all_fixes(run: list[Finding]) -> list[dict[str, Any]]:
    if len([f for f in run if f.fixes]) < 2:
        return []
    rows = [
        {**fix, "action": f"{fix['action']} ({finding.cause})"} for finding in run for fix in _fixes([finding])
    ]  # fmt: skip
    return sorted(rows, key=lambda fix: -fix["seconds"])


def _reason(reason: Reason) -> dict[str, Any]:
    return {
        "text": reason.text,
        "sources": [place(s) for s in reason.sources[:SOURCES_SHOWN]],
        "full": ", ".join(str(s) for s in reason.sources),
    }


def _fact(fact: Fact) -> dict[str, Any]:
    interval = ""
    if fact.low is not None and fact.high is not None and fact.quantity.unit is not Unit.TEXT:
        interval = f"from {show(fact.low, fact.quantity.unit)} to {show(fact.high, fact.quantity.unit)}"
    return {
        "name": fact.quantity.name,
        "value": str(fact),
        "interval": f"{interval}{'; ' if interval and fact.note else ''}{fact.note}",
        "meaning": fact.quantity.meaning,
        "scope": str(fact.scope),
        "samples": fact.samples,
        "source": str(fact.source),
    }
