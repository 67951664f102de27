"""A training log is in line when steps are steady, the loss is finite and falls; a yardstick alone says that it is fast."""

from __future__ import annotations

import numpy as np

from stallwise.evidence.capture import STEP_SHAPE, TORCH_TRACE
from stallwise.evidence.catalog import change, numerics, run, stages
from stallwise.evidence.evidence import Evidence
from stallwise.findings.finding import Fix, Reason
from stallwise.findings.proof import Limit, Proof
from stallwise.findings.step_facts import ms, percent
from stallwise.rules.health._logged import Logged, described, evaluating, failed, logs, moved, shifted, spikes
from stallwise.rules.health.stated_numbers import MOST

FEWEST_STEPS = 20
LONGEST = 160  # letters of a quoted line
FEWEST_LOSSES = 8  # points of a curve
VARIES = 0.25  # spread of the middle half of the steps over their median: batches of unlike lengths lie below
GOOD_MFU = 0.35  # the lower quarter of published dense 16-bit runs
RISES = 1.02  # loss at the end over that at the start: fine-tuning may end where it began, training never above it
LARGE_SPIKE = 2.0  # times the usual loss
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
        return None
    judged = [_lacks(log) for log in found]
    lacks, objects = max(judged, key=lambda own: (own[1], bool(own[0])))
    mfu = found[0].mfu
    fast = GOOD_MFU <= mfu <= MOST
    said = described(found[0])
    others = f"; {len(found) - 1} more logs alike" if len(found) > 1 and not lacks else ""
    return Proof(
        of="training log",
        says=said + others + ("" if fast or lacks else f"; {NO_YARDSTICK}"),
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
        speaks_for_run=fast,
        next=(TORCH_TRACE, STEP_SHAPE) if lacks else (),
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
    if log.mfu == log.mfu and log.mfu < GOOD_MFU:
        return f"steady, at an MFU of {percent(log.mfu)}, which is below most published runs.", True
    rates = log.values(run.FLOP_RATE)
    if log.mfu != log.mfu and len(rates) and float(np.median(rates)) < SLOW_CARD:
        return (
            f"steady, at {np.median(rates) / 1e12:.3g} TFLOP/s a GPU, which only an old or small card does well.",
            False,
        )
    return "", False


def _numbers_out(log: Logged) -> str:
    """Losses, rewards and scales that are not as they should be."""
    losses, rewards = log.values(run.LOSS), log.values(run.REWARD)
    if log.value(run.NAN_STEPS, 0.0) > 0:
        return "the loss is not finite."
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
        return f"ranks differ: the same forward takes {ms(fastest)} on one and {ms(slowest)} on another."
    if (share := evaluating(log)) > MOSTLY_EVALUATES:
        return f"evaluations take {percent(share)} of the time."
    if log.value(change.GPU_MEMORY_FACTOR, 1.0) > GREW:
        return f"memory grows {log.value(change.GPU_MEMORY_FACTOR):.2f}x over the log."
    return ""
