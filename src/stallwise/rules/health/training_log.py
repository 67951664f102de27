"""A training log is well when steps are steady, the loss is finite and falls, and a yardstick says that it is fast.

Refuted by: an MFU that fell towards the end of the log, another rank's log with longer steps, another MFU of the same run, a rate
that fell while the steps kept their time (shorter sequences, skipped steps).
"""

from __future__ import annotations

import numpy as np

from stallwise.evidence.capture import STEP_SHAPE, TORCH_TRACE
from stallwise.evidence.catalog import change, run
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Series
from stallwise.findings.finding import Fix, Reason
from stallwise.findings.proof import Limit, Proof
from stallwise.findings.step_facts import ms, percent
from stallwise.rules.health._second_number import lowest, of_now
from stallwise.rules.health.stated_numbers import MOST

FEWEST_STEPS = 20
QUARTERS = 4
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
    """The lowest MFU of any log and any quarter of it; the worst of what is told once where no log has it step by step."""
    found = [_worst_quarter(s) for s in evidence.series(run.MFU) if np.isfinite(s.values).any()]
    worst = lowest(of_now(evidence, run.MFU))
    return min((*found, *((worst.number,) if worst is not None else ())), default=float("nan"))


def _worst_quarter(series: Series) -> float:
    """Medians, so that one odd value decides nothing."""
    values = series.values[np.isfinite(series.values)]
    parts = np.array_split(values, min(QUARTERS, len(values)))
    return float(min(np.median(part) for part in parts))


def _slower_rank(evidence: Evidence) -> str:
    """Another rank whose usual step is longer: the log that is looked at is not the one that counts."""
    usual = {
        s.scope: float(np.nanmedian(s.values)) for s in evidence.series(run.STEP_TIME) if np.isfinite(s.values).any()
    }
    if len(usual) < 2 or max(usual.values()) <= (1 + STEADY) * min(usual.values()):
        return ""
    scope = max(usual, key=lambda s: usual[s])
    return f"{scope or 'another log'} takes {ms(usual[scope])} a step, another {ms(min(usual.values()))}."


def _fell(evidence: Evidence) -> str:
    """A rate whose last quarter lies below its first: steps of the same length that do less."""
    for quantity in (run.TOKENS_PER_S, run.SAMPLES_PER_S, run.FLOP_RATE):
        for series in evidence.series(quantity):
            values = series.values[np.isfinite(series.values)]
            if len(values) < FEWEST_STEPS:
                continue
            first, last = (float(np.median(part)) for part in np.array_split(values, QUARTERS)[:: QUARTERS - 1])
            if last < (1 - STEADY) * first:
                return f"{quantity.meaning} fell by {percent(1 - last / first)} over the log."
    return ""


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
    if refuted := _slower_rank(evidence) or _fell(evidence):
        return refuted
    if mfu != mfu:
        return "steady; nothing here tells whether that is fast (no MFU, no FLOP/s, no earlier run)."
    if mfu < GOOD_MFU:
        return f"steady, at an MFU of {percent(mfu)}, which is below most published runs."
    if mfu > MOST:  # reckoned against another card's peak, or by another count
        return (
            f"steady; an MFU of {percent(mfu)} is above all published runs, so it does not tell whether that is fast."
        )
    return ""
