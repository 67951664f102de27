"""The diagnosis as the JSON contract that checks and other programs rely on."""

from __future__ import annotations

from typing import Any

from stallwise.doctor.findings.diagnosis import SCHEMA, Diagnosis
from stallwise.doctor.findings.finding import Finding, Fix, Gain, Reason
from stallwise.doctor.findings.proof import Limit, NotUnderstood, Proof, Unexplained
from stallwise.doctor.findings.question import Question
from stallwise.doctor.findings.trial import Trial, Trials
from stallwise.doctor.findings.without_finding import without_finding
from stallwise.evidence.catalog import step
from stallwise.evidence.user_lines import CodeLine
from stallwise.render.incident import incident_dict
from stallwise.render.tables import tables_dict

JOB = "job.attribution"  # slowdown of a job of many workers and who explains it


def to_dict(diagnosis: Diagnosis) -> dict[str, Any]:
    """Plain containers, ready for json.dumps."""
    whole_s = diagnosis.ledger.whole_s if diagnosis.ledger else None
    run_findings = [f for f in diagnosis.findings if f.scope.kernel is None]
    answer: dict[str, Any] = {
        "schema": SCHEMA,
        "subject": diagnosis.subject,
        "inputs": diagnosis.evidence.inputs,
        "formats": diagnosis.evidence.formats,
        "state": diagnosis.state.value,
        "healthy": diagnosis.healthy,
        "why_unclear": diagnosis.why_unclear,
        "proofs": [_proof(p) for p in diagnosis.proofs],
        "limit": _limit(diagnosis.limit),
        "not_understood": _not_understood(diagnosis.not_understood),
        "unexplained": [_unexplained(u) for u in diagnosis.unexplained],
        "ranked": list(diagnosis.ranked),
        "set": list(diagnosis.in_set),
        "ledger": _ledger(diagnosis),
        "findings": [_finding(f, i + 1, whole_s) for i, f in enumerate(run_findings)],
        "hypotheses": [
            {
                "cause": h.cause,
                "probability": h.probability,
                "found": h.found,
                "because": [_reason(r) for r in h.because],
                "against": [_reason(r) for r in h.against],
            }
            for h in diagnosis.hypotheses
        ],
        "next": [
            {
                "artifact": n.capture.artifact,
                "command": n.capture.command,
                "separates": list(n.separates),
                "information_bits": n.information_bits,
            }
            for n in diagnosis.next
        ],
        "questions": [question_to_dict(q) for q in diagnosis.questions],
        "contradictions": [_reason(r) for r in diagnosis.contradictions],
        "notes": [{"text": n.text, "source": str(n.source)} for n in diagnosis.notes],
        "unknown": [{"cause": u.cause, "missing": list(u.missing)} for u in diagnosis.unknown],
        "tree": list(diagnosis.tree),
    }
    for job in diagnosis.evidence.table(JOB):
        answer["job"] = job.meta
    if diagnosis.incident is not None:
        answer |= incident_dict(diagnosis.incident)
    if diagnosis.trials:
        answer["trials"] = [trials_to_dict(t) for t in diagnosis.trials]
    tables = tables_dict(diagnosis)
    if tables:
        answer["tables"] = tables
    kernels = _kernels(diagnosis)
    if kernels:
        answer["kernels"] = kernels
    return answer


def question_to_dict(question: Question) -> dict[str, Any]:
    """What to ask, what to choose from, which causes the answers separate."""
    return {
        "text": question.text,
        "choices": [c.text for c in question.choices],
        "separates": list(question.separates),
        "information_bits": question.information_bits,
    }


def trials_to_dict(trials: Trials) -> dict[str, Any]:
    """What was tried in one job; `ratio` is the step before over the step after."""
    both = trials.together
    return {
        **trials.about,
        "trials": [_trial(t) for t in trials.found],
        "together": {**_trial(both), "of": list(both.of), "adds": both.adds, "if_independent_ratio": both.alone}
        if both
        else None,
    }


def _trial(trial: Trial) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": trial.name,
        "title": trial.title,
        "causes": list(trial.causes),
        "state": trial.state,
        "why": trial.why,
        "needs": trial.needs,
        "risk": trial.risk,
    }
    if trial.measured:
        row |= {
            "before_s": trial.before_s,
            "after_s": trial.after_s,
            "ratio": trial.ratio,
            "ratio_low": trial.low,
            "ratio_high": trial.high if trial.high != float("inf") else None,
            "pairs": trial.pairs,
            "one_off_s": trial.one_off_s,
            "memory_more_bytes": trial.more_bytes,
            "detectable_ratio": trial.detectable,
            "remarks": list(trial.remarks),
            "loss_before": trial.loss_before,
            "loss_after": trial.loss_after,
        }
    return row


def _proof(proof: Proof) -> dict[str, Any]:
    return {
        "of": proof.of,
        "says": proof.says,
        "proven": not proof.lacks,
        "speaks_for_run": proof.covers_run,
        "lacks": proof.lacks,
        "confidence": proof.confidence,
        "because": [_reason(r) for r in proof.because],
        "limit": _limit(proof.limit),
    }


def _limit(limit: Limit | None) -> dict[str, Any] | None:
    if limit is None:
        return None
    levers = [_fix(f, None) for f in limit.levers]
    return {"what": limit.what, "near_share": limit.near_share, "text": limit.text, "levers": levers}


def _unexplained(row: Unexplained) -> dict[str, Any]:
    return {"what": row.what, "seconds": row.seconds, "share": row.share}


def _not_understood(unread: NotUnderstood) -> dict[str, Any]:
    return {
        "files": list(unread.files),
        "lines": [_reason(r) for r in unread.lines],
        "line_count": unread.line_count,
        "numbers_named_share": unread.numbers_named_share,
        "time": [_unexplained(u) for u in unread.time],
    }


def _kernels(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    by_name: dict[str, list[Finding]] = {
        scope.kernel: [] for scope in diagnosis.evidence.scopes("kernel") if scope.kernel is not None
    }
    for finding in diagnosis.findings:
        if finding.scope.kernel is not None:
            by_name.setdefault(finding.scope.kernel, []).append(finding)
    return [
        {
            "name": name,
            "ranked": [f.cause for f in found],
            "findings": [_finding(f, i + 1, None) for i, f in enumerate(found)],
            "without_finding": None if found else _without_finding(diagnosis, name),
        }
        for name, found in by_name.items()
    ]


def _without_finding(diagnosis: Diagnosis, kernel: str) -> dict[str, Any]:
    left_over = without_finding(diagnosis.evidence, kernel)
    return {"state": left_over.word, "means": left_over.means}


def _ledger(diagnosis: Diagnosis) -> dict[str, Any] | None:
    ledger, evidence = diagnosis.ledger, diagnosis.evidence
    if ledger is None:
        return None
    traced, clean = evidence.get(step.TRACED_STEP), evidence.get(step.CLEAN_STEP)
    return {
        "step_s": ledger.whole_s,
        "traced_step_s": traced.number if traced else None,
        "clean_step_s": ledger.clean_step_s,
        "clean_step_range_s": list(ledger.whole_ends_s) if ledger.clean_step_s and not clean else None,
        "unit": ledger.unit,
        "samples": ledger.samples,
        "whole_s": ledger.whole_s,
        "accounts": {a.value: s for a, s in ledger.seconds.items()},
        "account_ranges": {a.value: list(ends) for a, ends in ledger.ranges.items()},
        "spans": dict(ledger.spans),
        "gauges": dict(ledger.gauges),
        "source": str(ledger.source),
    }


def _finding(finding: Finding, place: int, whole_s: float | None) -> dict[str, Any]:
    return {
        "cause": finding.cause,
        "rank": place,
        "confidence": finding.confidence,
        "basis": finding.basis,
        "headline": finding.headline,
        "summary": finding.summary,
        "family": finding.family,
        "owner": finding.owner or None,
        "code_line": _code_line(finding.code_line),
        "scope": finding.scope.to_dict(),
        "account": finding.category.value if finding.category else None,
        "gain": _gain(finding.gain, whole_s),
        "predicted": _gain(finding.predicted, whole_s),
        "tried": finding.tried,
        "optional": finding.optional,
        "because": [_reason(r) for r in finding.because],
        "against": [_reason(r) for r in finding.against],
        "fixes": [_fix(f, whole_s) for f in finding.fixes],
        "looks_bad_is_not": [_reason(r) for r in finding.not_here],
        "avoid": finding.avoid,
        "rivals": [{"cause": r.cause, "less_likely": r.less_likely, "check": r.check} for r in finding.rivals],
        "would_change": list(finding.overturn),
    }


def _code_line(line: CodeLine | None) -> dict[str, Any] | None:
    return None if line is None else {name: getattr(line, name) for name in ("file", "line", "function", "share")}


def _fix(fix: Fix, whole_s: float | None) -> dict[str, Any]:
    return {
        "action": fix.action,
        "gain": _gain(fix.gain, whole_s),
        "worth": fix.worth,
        "cost": fix.cost,
        "risk": fix.risk,
    }


def _gain(gain: Gain | None, whole_s: float | None) -> dict[str, Any] | None:
    if gain is None:
        return None
    return {
        "low_s": gain.low_s,
        "high_s": gain.high_s,
        "low_share": gain.low_s / whole_s if whole_s else None,
        "high_share": gain.high_s / whole_s if whole_s else None,
        "basis": gain.basis,
        "outside_account_s": gain.beside_s,
    }


def _reason(reason: Reason) -> dict[str, Any]:
    return {"text": reason.text, "sources": [str(s) for s in reason.sources]}
