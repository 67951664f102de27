"""A training log is well when steps are steady, the loss is finite and falls, and a yardstick says that it is fast."""

from __future__ import annotations

import numpy as np

from stallwise.evidence.capture import STEP_SHAPE, TORCH_TRACE
from stallwise.evidence.catalog import change, run
from stallwise.evidence.evidence import Evidence
from stallwise.findings.finding import Fix, Reason
from stallwise.findings.proof import Limit, Proof
from stallwise.findings.step_facts import ms, percent
from stallwise.rules.health.stated_numbers import MOST

FEWEST_STEPS = 20
STEADY = 0.05  # spread of the middle half of the steps over their median
GOOD_MFU = 0.35  # the lower quarter of published dense 16-bit runs


def training_log(evidence: Evidence) -> Proof | None:
    """Steady, finite, falling, and measured against something."""
    series = max(evidence.series(run.STEP_TIME), key=lambda s: len(s.values), default=None)
    if series is None:
        return None
    times = series.values[np.isfinite(series.values)]
    if len(times) < 2:
        return None
    middle = float(np.median(times))
    low, high = np.percentile(times, (25, 75))
    spread = float(high - low) / middle if middle > 0 else float("inf")
    mfu = _yardstick(evidence)
    lacks = _lacks(evidence, len(times), spread, mfu)
    said = f"{len(times)} steps of {ms(middle)}, the middle half within {percent(spread)}"
    return Proof(
        of="training log",
        says=said + (f", MFU {percent(mfu)}" if mfu == mfu else ""),
        because=(Reason(said, (series.source,)),),
        confidence=0.75,
        limit=None
        if lacks
        else Limit(
            "matrix units",
            mfu,
            f"MFU {percent(mfu)}, where published dense 16-bit runs reach 35% to 55%: to go faster, look inside a step",
            (Fix("a trace of a few steps shows what the rest is made of", worth="certainty", cost="one short run"),),
        ),
        lacks=lacks,
        objects=bool(lacks) and not lacks.startswith(("steady", "only")),
        next=(TORCH_TRACE, STEP_SHAPE) if lacks else (),
    )


def _yardstick(evidence: Evidence) -> float:
    series = max(evidence.series(run.MFU), key=lambda s: len(s.values), default=None)
    if series is not None and np.isfinite(series.values).any():
        return float(np.nanmedian(series.values))
    return evidence.value(run.MFU)


def _lacks(evidence: Evidence, count: int, spread: float, mfu: float) -> str:
    loss = max(evidence.series(run.LOSS), key=lambda s: len(s.values), default=None)
    if evidence.value(run.NAN_STEPS, 0.0) > 0:
        return "the loss is not finite."
    if count < FEWEST_STEPS:
        return f"only {count} steps are logged; that is too few to call it steady."
    moved = [q for q in (change.DROP_RATIO, change.DRIFT_RATIO) if evidence.get(q) is not None]
    if moved or spread > STEADY:
        return f"step times vary by {percent(spread)}." if not moved else "step times change over the log."
    if loss is None or len(loss.values) < FEWEST_STEPS:
        return "steady; without a loss nothing tells whether it learns, and nothing whether that is fast."
    quarter = max(1, len(loss.values) // 4)
    first, last = np.nanmean(loss.values[:quarter]), np.nanmean(loss.values[-quarter:])
    if not last < first:
        return "the loss does not fall."
    if mfu != mfu:
        return "steady; nothing here tells whether that is fast (no MFU, no FLOP/s, no earlier run)."
    if mfu < GOOD_MFU:
        return f"steady, at an MFU of {percent(mfu)}, which is below most published runs."
    if mfu > MOST:  # reckoned against another card's peak, or by another count
        return (
            f"steady; an MFU of {percent(mfu)} is above all published runs, so it does not tell whether that is fast."
        )
    return ""
