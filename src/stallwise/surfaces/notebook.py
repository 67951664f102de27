"""How results look in a notebook, and which tables they hold."""

from __future__ import annotations

from dataclasses import asdict
from html import escape
from typing import Any

from stallwise.doctor.findings.comparison import Comparison
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.evidence.shown import way
from stallwise.planner.search import Plan

FRAME_HEIGHT = 720


@way("dict", "Diagnosis")
def diagnosis_dict(diagnosis: Diagnosis) -> dict[str, Any]:
    """The JSON contract."""
    from stallwise.render.json import to_dict

    return to_dict(diagnosis)


@way("html", "Diagnosis")
@way("html", "Comparison")
@way("html", "Plan")
def in_a_frame(answer: object) -> str:
    """The whole page in a frame of its own: its style stays inside, the notebook's outside."""
    from stallwise.render.html import to_html

    page = escape(to_html(answer), quote=True)
    return (
        f'<iframe title="stallwise report" sandbox="allow-scripts" width="100%" height="{FRAME_HEIGHT}" '
        f'frameborder="0" srcdoc="{page}"></iframe>'
    )


@way("markdown", "Diagnosis")
@way("markdown", "Comparison")
@way("markdown", "Plan")
def in_markdown(answer: object) -> str:
    """The same words and figures."""
    from stallwise.render.markdown import to_markdown

    return to_markdown(answer)


@way("rows", "Diagnosis")
def diagnosis_rows(diagnosis: Diagnosis) -> dict[str, list[dict[str, Any]]]:
    """Findings, fixes, facts, ledger, hypotheses; and what took most: kernels, operators, python_lines, copies, collectives,
    allocations."""
    from stallwise.render.tables import all_rows

    ledger = diagnosis.ledger
    return {
        "findings": [
            {
                "cause": f.cause, "confidence": f.confidence, "headline": f.headline, "scope": str(f.scope),
                "low_s": f.gain.low_s if f.gain else None, "high_s": f.gain.high_s if f.gain else None,
                "optional": f.optional,
            }
            for f in diagnosis.findings
        ],
        "fixes": [
            {
                "cause": f.cause, "action": fix.action, "low_s": fix.gain.low_s if fix.gain else None,
                "high_s": fix.gain.high_s if fix.gain else None, "worth": fix.worth, "cost": fix.cost, "risk": fix.risk,
            }
            for f in diagnosis.findings
            for fix in f.fixes
        ],
        "facts": [
            {
                "name": f.quantity.name, "value": None if isinstance(f.value, str) else f.value, "text": str(f),
                "unit": f.quantity.unit.value, "scope": str(f.scope), "samples": f.samples, "source": str(f.source),
            }
            for found in diagnosis.evidence.facts.values()
            for f in found
        ],
        "ledger": [
            {"account": a.value, "seconds": s, "share": ledger.share(a)} for a, s in ledger.seconds.items()
        ] if ledger else [],
        "hypotheses": [{"cause": h.cause, "probability": h.probability} for h in diagnosis.hypotheses],
        **all_rows(diagnosis),
    }  # fmt: skip


@way("dict", "Comparison")
def comparison_dict(comparison: Comparison) -> dict[str, Any]:
    """The JSON contract."""
    from stallwise.render.documents.comparison import data

    return data(comparison)


@way("rows", "Comparison")
def comparison_rows(comparison: Comparison) -> dict[str, list[dict[str, Any]]]:
    """Changes and set-up."""
    return {"changes": [asdict(c) for c in comparison.changes], "setup": [asdict(c) for c in comparison.setup]}


@way("dict", "Plan")
def plan_dict(plan: Plan) -> dict[str, Any]:
    """As `plan train --json` prints it."""
    from stallwise.render.documents.plan import data

    return data(plan)


@way("rows", "Plan")
def plan_rows(plan: Plan) -> dict[str, list[dict[str, Any]]]:
    """The best layouts and the frontier."""

    def row(c: Any) -> dict[str, Any]:
        return {
            "layout": c.layout.label, "seconds": c.seconds, "low_s": c.low_s, "high_s": c.high_s, "mfu": c.mfu_share,
            "tokens_per_s": c.tokens_per_s, "memory_bytes": c.memory_bytes, "fits": c.fits,
        }  # fmt: skip

    return {"best": [row(c) for c in plan.best], "frontier": [row(c) for c in plan.frontier]}
