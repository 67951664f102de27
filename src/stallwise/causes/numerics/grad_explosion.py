"""Gradients or updates grow by orders before the loss follows.

## What it means
The norm of the gradient, or of the optimizer's update, leaves its usual range first; some steps later the loss jumps or is
NaN. Typical: no clipping near the peak learning rate, residual branches initialised too large, momentum and second moment
that line up after a quiet stretch.

## Why it costs
A spike costs the steps until the loss is back; a divergence costs the run since the last good checkpoint.

## What else looks so
One outlier batch lifts loss and gradient in the same step and is over in the next. fp16 overflow gives NaN without a growing
gradient before it.

## Fix
Clip the norm; lower the peak rate or lengthen warm-up; skip steps whose update norm is over twice the usual; a smaller beta2;
initialise residual outputs by depth.

## How the gain is found
The steps between the first unusual norm and the recovery, for each spike.
"""

from __future__ import annotations

import numpy as np

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import LOSS_LOG
from stallwise.evidence.catalog import numerics as n
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Evidence

ORDERS = 10.0  # times the usual gradient norm
OFTEN = 0.5  # of the spikes begin with the update or the gradient
ABSURD = 1e5  # usual gradient norm of no sane start; transformers begin between 0.1 and 100
FEWEST = 2  # logged points
MOSTLY = 0.9  # of the logged steps after the first bad one
GUESSING = 13.8  # nats: ln of a million, more words than any tokenizer has
RISEN = 1.3
STUCK = 0.02  # the loss moves less than this over the log

# The usual reason of divergence in 16-bit or wider training.
CLUES = (
    Clue((n.GRAD_RATIO,), lambda e: e.value(n.GRAD_RATIO) >= ORDERS, "fair", "the gradient norm grew by orders"),
    Clue((n.FIRST_MOVER,), lambda e: e.text(n.FIRST_MOVER) in ("gradient", "update"), "fair",
         "the gradient or the update moved before the loss"),
)  # fmt: skip


@rule()
def grad_explosion(evidence: Evidence) -> Finding | None:
    """Judges what moved first."""
    mover, leads = evidence.text(n.FIRST_MOVER), evidence.value(n.LEADS, 0.0)
    ratio, spikes = evidence.value(n.GRAD_RATIO, 1.0), evidence.value(n.SPIKES, 0.0)
    nan = evidence.value(run.NAN_STEPS, 0.0) > 0
    led = mover in ("gradient", "update") and leads >= OFTEN
    lasting = evidence.value(n.SPIKE_STEPS, 1.0) >= 3
    level = evidence.value(n.GRAD_LEVEL, 0.0) >= ABSURD and evidence.value(n.LOSS_PROGRESS, 1.0) < STUCK
    if ratio >= ORDERS and (led or nan) and (nan or lasting):
        confidence = 0.92 if led else 0.8
    elif led and spikes >= 2 and lasting:
        confidence = 0.88
    elif led and mover == "update" and lasting:
        confidence = 0.75
    elif level:
        confidence = 0.8
    elif (dead := _died(evidence)) is not None:
        return dead
    elif _worse_than_guessing(evidence):
        return _diverging(evidence)
    else:
        return None
    return Finding(
        headline=_headline(evidence, mover, ratio, spikes, level and not led),
        confidence=confidence,
        because=_because(evidence, level),
        fixes=_fixes(evidence, level and not led),
        avoid="Do not look for a bad batch: the norms move before the loss does.",
        next=(LOSS_LOG,) if not evidence.series(run.UPDATE_NORM) else (),
        explains=("bad-batch",),
        blocking=True,
    )


LOST = 0.45  # NaN up to the end says that the run is dead, not of what: a bad batch and a narrow format end so too


def _died(evidence: Evidence) -> Finding | None:
    """Gradients that are no number up to the end, and a loss that is none either: what trainers print as NaN or as 0."""
    gone, steps = evidence.get(run.NAN_GRADIENTS), evidence.get(run.FIRST_NAN_STEP)
    losses = next((s.values for s in evidence.series(run.LOSS)), np.empty(0))
    if gone is None or steps is None or evidence.text(run.PRECISION) == "fp16" or len(losses) < FEWEST:
        return None
    after = losses[-min(int(gone.number), len(losses)) :]
    lost = ~np.isfinite(after) | (after == 0)  # transformers' filter of NaN losses logs them as 0
    if lost.mean() < MOSTLY or (losses == 0).all():
        return None
    shown = "0" if (after == 0).any() else "NaN"
    return Finding(
        headline=f"The gradient is no number from step {steps.number:.0f} on, and the loss is {shown} with it: the weights are lost.",
        confidence=LOST,
        because=(
            Reason.of(f"the gradient norm is NaN in the last {gone.number:.0f} of {gone.samples} logged steps", gone),
            Reason.of(f"the loss is {shown} in {lost.mean():.0%} of them", steps),
        ),
        against=(
            Reason(
                "whether it grew before, or a 16-bit value passed its range in one step, lies between two logged steps"
            ),
        ),
        fixes=_fixes(evidence, level=False),
        avoid="Do not train on from the last checkpoint after that step: it holds no numbers.",
        next=(LOSS_LOG,),
        explains=("bad-batch",),
        blocking=True,
    )


def _worse_than_guessing(evidence: Evidence) -> bool:
    """A language model whose loss rises above what guessing costs under any vocabulary, while its gradients grow."""
    loss, norm = evidence.series(run.LOSS), evidence.series(run.GRAD_NORM)
    if not loss or not norm or not evidence.all(run.TOKENS_PER_S):
        return False
    losses, norms = (s[0].values[np.isfinite(s[0].values)] for s in (loss, norm))
    if len(losses) < FEWEST or len(norms) < FEWEST:
        return False
    return bool(losses[-1] > max(GUESSING, RISEN * losses[0]) and norms[-1] > RISEN * norms[0])


def _diverging(evidence: Evidence) -> Finding:
    loss, norm = (evidence.series(q)[0] for q in (run.LOSS, run.GRAD_NORM))
    text = f"the loss rises from {loss.values[0]:.3g} to {loss.values[-1]:.3g}, and the gradient norm from {norm.values[0]:.3g} to {norm.values[-1]:.3g}"
    return Finding(
        headline=f"The run diverges: {text}; guessing among a million words costs {GUESSING:.1f}.",
        confidence=0.65,
        because=(Reason(text, (loss.source, norm.source)),),
        fixes=_fixes(evidence, level=False),
        avoid="Do not tune speed first: what it computes is lost.",
        next=(LOSS_LOG,),
        blocking=True,
    )


def _headline(evidence: Evidence, mover: str, ratio: float, spikes: float, level: bool) -> str:
    if level:
        return f"gradients are huge from the start ({evidence.value(n.GRAD_LEVEL):.0e}) and the loss does not move"
    times = f"{spikes:.0f} times" if spikes > 1 else f"from step {evidence.value(n.FIRST_STEP, 0):.0f} on"
    size = f", up to {ratio:,.0f}x" if ratio >= 3 and mover == "gradient" else ""
    return f"the {mover or 'gradient'} grows before the loss{size}, {times}"


def _because(evidence: Evidence, level: bool) -> tuple[Reason, ...]:
    found = []
    for quantity, text in (
        (n.FIRST_MOVER, "the {} leaves its usual range first"),
        (n.LEADS, "in {} of the spikes"),
        (n.FIRST_STEP, "the first one begins at step {}"),
        (n.GRAD_RATIO, "gradient norm up to {} of its usual value"),
        (n.UPDATE_RATIO, "update norm up to {} of its usual value"),
        (run.FIRST_NAN_STEP, "the loss is NaN from step {}"),
    ):
        if (fact := evidence.get(quantity)) is not None:
            found.append(Reason.of(text.format(fact), fact))
    if level and (fact := evidence.get(n.GRAD_LEVEL)) is not None:
        found.append(Reason.of(f"the usual gradient norm is {fact.number:.1e}", fact))
    return tuple(found)


def _fixes(evidence: Evidence, level: bool) -> tuple[Fix, ...]:
    if level:
        return (Fix("initialise residual outputs with 1/sqrt(2 layers); check the init of the first layers"),
                Fix("clip the norm and warm up longer"))  # fmt: skip
    first = Fix(
        "clip the gradient norm (1.0) and lower the peak rate or lengthen warm-up", cost="a rerun from a checkpoint"
    )
    guard = Fix("skip steps whose update norm is over twice the usual; a smaller beta2 (0.95)", cost="a few lines")
    return (guard, first) if evidence.text(n.FIRST_MOVER) == "update" else (first, guard)
