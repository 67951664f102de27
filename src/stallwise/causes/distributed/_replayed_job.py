"""What a replayed job of many workers says beside any of its causes."""

from __future__ import annotations

from stallwise.doctor.findings.finding import Reason
from stallwise.evidence.catalog import distributed as d
from stallwise.evidence.catalog import workers as q
from stallwise.evidence.evidence import Evidence


def of_the_job(evidence: Evidence) -> tuple[Reason, ...]:
    """Slowdown against the ideal step, and who explains it."""
    step, ideal, slowdown = (evidence.get(x) for x in (d.JOB_STEP, q.IDEAL_STEP, q.SLOWDOWN))
    few, last, error = (evidence.get(x) for x in (q.SLOWEST_SHARE, q.LAST_STAGE_SHARE, q.REPLAY_ERROR))
    if not (step and ideal and slowdown and few):
        return ()
    stage = f", the last stage {max(last.number, 0.0):.0%}" if last else ""
    text = (
        f"{step} a step against {ideal} if all workers took the mean: {slowdown.number:.2f}x slower; the slowest 3% of workers "
        f"explain {few.number:.0%} of that{stage}"
    )
    replayed = f"replayed unchanged, the step differs from the measured one by {abs(error.number):.1%}" if error else ""
    return (Reason.of(text, slowdown), *((Reason.of(replayed, error),) if error else ()))
