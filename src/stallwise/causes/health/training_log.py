"""A training log is in line when steps are steady, the loss is finite and falls; a yardstick alone says that it is fast.

Refuted by: an MFU that fell towards the end of the log, another rank's log with longer steps, another MFU of the same run, a rate
that fell while the steps kept their time (shorter sequences, skipped steps).
"""

from __future__ import annotations

import numpy as np

from stallwise.causes.health._logged import Logged, described, evaluating, failed, logs, moved, shifted, spikes
from stallwise.causes.health._second_number import lowest, of_now
from stallwise.causes.health.stated_numbers import MOST
from stallwise.doctor.findings.finding import Fix, Reason
from stallwise.doctor.findings.proof import Limit, Proof
from stallwise.doctor.findings.step_facts import ms, percent
from stallwise.evidence.capture import LOSS_LOG, STEP_SHAPE, TORCH_TRACE
from stallwise.evidence.catalog import change, numerics, run, stages
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Series

FEWEST_STEPS = 20
QUARTERS = 4
STEADY = 0.05  # by this much the usual steps of like ranks, and the rates of like quarters, differ
LONGEST = 160  # letters of a quoted line
FEWEST_LOSSES = 8  # points of a curve
VARIES = 0.25  # spread of the middle half of the steps over their median: batches of unlike lengths lie below
GOOD_MFU = 0.35  # the lower quarter of published dense 16-bit runs
RISES = 1.02  # loss at the end over that at the start: fine-tuning may end where it began, training never above it
LARGE_SPIKE = 2.0  # times the usual loss
EXPLODED = 100.0  # high over low gradient norms: warm-up and hard batches stay far below
MANY_SKIPPED = 0.05  # of the steps: a scaler that searches skips fewer
GREW = 1.1  # of memory
UNLIKE = 1.25  # forward on the slowest rank over that on the fastest
MOSTLY_EVALUATES = 0.3  # of all time
SLOW_CARD = 40e12  # FLOP/s of a GPU: any data-centre card since 2020 does more, older and smaller ones do not
NO_YARDSTICK = "whether that is fast is not in this file (no MFU, no earlier run)"


def training_log(evidence: Evidence) -> Proof | None:
    """Steady, finite, falling; fast only where something measures it."""
    found = [log for log in logs(evidence) if log.longest is not None]
    if not found:
        return _one_point(evidence)
    judged = [_lacks(log) for log in found]
    lacks, objects = max(judged, key=lambda own: (own[1], bool(own[0])))
    mfu = _yardstick(evidence)
    if not objects and (refuted := _slower_rank(evidence) or _fell(evidence) or _slow(mfu)):
        lacks, objects = refuted, True
    fast = GOOD_MFU <= mfu <= MOST
    summary = described(found[0])
    others = f"; {len(found) - 1} more logs alike" if len(found) > 1 and not lacks else ""
    return Proof(
        of="training log",
        says=summary + others + ("" if fast or lacks else f"; {NO_YARDSTICK}"),
        because=tuple(Reason(described(log), (log.longest.source,)) for log in found if log.longest is not None),
        confidence=0.75,
        limit=None
        if lacks or not fast
        else Limit(
            "matrix units",
            mfu,
            f"MFU {percent(mfu)}, where published dense 16-bit runs reach 35% to 55%: to go faster, look inside a step",
            (Fix("a trace of a few steps shows what the rest is made of", worth="certainty", cost="one short run"),),
        ),
        lacks=lacks,
        objects=objects,
        covers_run=fast,
        next=(TORCH_TRACE, STEP_SHAPE) if lacks else (),
    )


def _one_point(evidence: Evidence) -> Proof | None:
    """A trainer's state after its first entry."""
    loss, planned = evidence.get(run.LOSS), evidence.get(run.STEPS_PLANNED)
    if loss is None or planned is None or loss.source.file != planned.source.file:
        return None
    says = f"loss {loss.number:.4g} at one point of a run of {planned.number:,.0f} steps"
    if (norm := evidence.get(run.GRAD_NORM)) is not None:
        says += f", gradient norm {norm.number:.3g}"
    return Proof(
        "training log",
        says,
        (Reason.of(says, loss, planned),),
        lacks=f"{says}: one point is no trend.",
        next=(LOSS_LOG,),
    )


def _lacks(log: Logged) -> tuple[str, bool]:
    """What keeps this log from being in line, and whether it was seen rather than not logged."""
    steps, losses = len(log.values(run.STEP_TIME)), log.values(run.LOSS)
    if (error := failed(log)) is not None:
        return f"the log tells of an error: {' '.join(error.text.split())[:LONGEST]}", True
    if out := _numbers_out(log) or _pace_out(log):
        return out, True
    pace = max(steps, len(log.values(run.TOKENS_PER_S)), len(log.values(run.SAMPLES_PER_S)))
    if pace < FEWEST_STEPS and max(len(losses), len(log.values(run.REWARD))) < FEWEST_LOSSES:
        return f"only {max(pace, len(losses))} steps are logged; that is too few to call it steady.", False
    rates = log.values(run.FLOP_RATE)
    if log.mfu != log.mfu and len(rates) and float(np.median(rates)) < SLOW_CARD:
        return (
            f"steady, at {np.median(rates) / 1e12:.3g} TFLOP/s a GPU, which only an old or small card does well.",
            False,
        )
    return "", False


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


def _slow(mfu: float) -> str:
    return f"steady, at an MFU of {percent(mfu)}, which is below most published runs." if mfu < GOOD_MFU else ""


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


def _from_step(log: Logged) -> str:
    step = min((f.number for f in log.evidence.all(run.FIRST_NAN_STEP) if f.source.file == log.file), default=np.nan)
    return f", from step {step:.0f} on" if step == step else ""


def _numbers_out(log: Logged) -> str:
    """Losses, rewards and scales that are not as they should be."""
    losses, rewards = log.values(run.LOSS), log.values(run.REWARD)
    if log.value(run.NAN_STEPS, 0.0) > 0:
        return f"the loss is not finite in {log.value(run.NAN_STEPS):.0f} logged steps{_from_step(log)}."
    if (dead := log.value(run.NAN_GRADIENTS, 0.0)) > 0:
        moves = len(losses) >= FEWEST_LOSSES and float(np.ptp(losses[-int(dead) :])) > 0
        still = ", while the loss goes on: such steps are skipped, or the norm is not measured" if moves else ""
        return f"the gradient norm is no number in the last {dead:.0f} logged steps{_from_step(log)}{still}."
    if len(rewards) >= FEWEST_LOSSES:  # a reward says how it learns; the loss of such a run may rise with it
        first, last = moved(rewards)
        return "" if last > first else f"the reward does not rise ({first:.4g} to {last:.4g})."
    count, back, ratio = spikes(log)
    if count and (back < 1.0 or ratio >= LARGE_SPIKE):
        return f"the loss spikes {count:.0f} times, up to {ratio:.2g}x its usual value."
    if len(losses) >= FEWEST_LOSSES:
        first, last = moved(losses)
        if last > RISES * first if first > 0 else last > first:
            return f"the loss does not fall ({first:.4g} to {last:.4g})."
    norms = log.values(run.GRAD_NORM)
    if len(norms) >= FEWEST_LOSSES:
        low, high = np.percentile(norms, (10, 90))
        if max(high, norms.max() / 10) > EXPLODED * low > 0:
            return f"the gradient norm lies between {low:.3g} and {norms.max():.3g}."
    if log.value(numerics.SCALE_LAST, 1.0) < 1.0:
        return "the loss scale ends below 1."
    skipped = log.values(run.SKIPPED_STEPS)
    if len(skipped) and float(np.mean(skipped > 0)) > MANY_SKIPPED and skipped.max() <= 1.0:
        return f"{percent(float(np.mean(skipped > 0)))} of the steps are skipped."
    return ""


def _pace_out(log: Logged) -> str:
    if shifted(log):
        return "step times change over the log."
    if log.spread > VARIES:
        return f"step times vary by {percent(log.spread)}."
    fastest, slowest = log.value(run.FASTEST_FORWARD), log.value(stages.FORWARD)
    if slowest > UNLIKE * fastest:
        return f"ranks differ: the same forward takes {ms(fastest)} on one and {ms(slowest)} on another: --timing-log-option all names them."
    if (share := evaluating(log)) > MOSTLY_EVALUATES:
        return f"evaluations take {percent(share)} of the time."
    if log.value(change.GPU_MEMORY_FACTOR, 1.0) > GREW:
        return f"memory grows {log.value(change.GPU_MEMORY_FACTOR):.2f}x over the log."
    used = log.values(run.GPU_MEMORY)
    if len(used) >= QUARTERS and used[-1] > GREW * used[len(used) // QUARTERS]:  # the first steps fill the cache
        return f"memory rises to {used[-1] / 1e9:.1f} GB, from {used[len(used) // QUARTERS] / 1e9:.1f} GB after the first quarter."
    return ""
