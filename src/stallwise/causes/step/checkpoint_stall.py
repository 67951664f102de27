"""Saving a checkpoint blocks the training loop.

## What it means
The step copies weights and optimizer states to the host and then writes them to storage while the device waits. It
happens at a period: every N steps.

## Why it costs
The whole save is lost time, and its share is save time over the time between saves. All ranks wait for the slowest
writer.

## What else looks so
A slow read of input also makes single slow steps, without copies to the host. Offloading copies out and back in every
step.

## Fix
Save asynchronously: copy to pinned host memory (seconds become tenths), write from another thread or process. Shard
the write over ranks, write to local disk and upload later, and save less often: the best interval is near sqrt(2 x
save time x mean time between failures).

## How the gain is found
The time of the save spread over the traced steps. The low end takes half of it: the copy to the host stays even with an
asynchronous save, and a few steps say little about how often a save comes.
"""

from __future__ import annotations

from stallwise.causes.step.input_bursty import SPARED
from stallwise.doctor.findings.clue import Clue, above, yes
from stallwise.doctor.findings.finding import Finding, Fix, Gain, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.doctor.findings.step_facts import NOTICEABLE, StepFacts, bytes_text, ms
from stallwise.evidence.capture import TRAIN_LOG
from stallwise.evidence.catalog import change, run, stated
from stallwise.evidence.catalog import run as logged
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

LONG_SAVE = 0.02  # of the wall time between saves: less is the price of having checkpoints


@rule()
def checkpoint_stall(evidence: Evidence) -> Finding | None:
    """Looks for saves in the trace or in the log."""
    facts = StepFacts(evidence)
    lost = facts.seconds(s.CHECKPOINT_WAIT)
    if facts.knows(s.STEP_TIME) and facts.share(lost) >= NOTICEABLE:
        return _in_trace(facts, lost)
    return _in_log(facts)


def _in_trace(facts: StepFacts, lost: float) -> Finding:
    saving, steps = facts.steps_with(s.CHECKPOINT_WAIT)
    series = facts.series(s.CHECKPOINT_WAIT)
    one = float(series.values.max()) if series is not None else lost
    gain = facts.gain(
        SPARED * lost,
        lost,
        f"at {saving} save{'s' if saving > 1 else ''} in {steps} steps; less in the measure that saves are rarer",
    )
    return Finding(
        headline=f"Saving a checkpoint blocks the loop for {ms(one)}, in {saving} of {steps} steps.",
        confidence=0.93,
        category=Category.CHECKPOINT,
        gain=gain,
        because=(
            *_copied(facts, steps),
            facts.because(
                f"nothing else runs meanwhile; the other steps take {ms(facts.seconds(s.STEP_MEDIAN))}",
                s.CHECKPOINT_WAIT,
                s.STEP_MEDIAN,
            ),
        ),
        fixes=_fixes(gain),
        avoid="Do not tune the input pipeline: the slow step copies out, it does not wait for a batch.",
        next=(TRAIN_LOG,),
        explains=("host-work-unattributed", "input-bursty"),
    )


def _copied(facts: StepFacts, steps: int) -> tuple[Reason, ...]:
    size = facts.number(s.TO_HOST_BYTES) * steps
    if not size > 0:
        return ()
    return (facts.because(f"{bytes_text(size)} go to the host in that step and do not come back", s.TO_HOST_BYTES),)


def _in_log(facts: StepFacts) -> Finding | None:
    save, every = facts.seconds(logged.SAVE_TIME), facts.number(logged.SAVE_EVERY)
    step = facts.step_s
    if save <= 0 or (every and step and save < LONG_SAVE * every * step):
        return None
    saves, whole_s = facts.number(logged.SAVES), _logged_s(facts)
    save_time = facts.evidence.get(logged.SAVE_TIME)
    if not saves and not every and save_time is not None and not save_time.stated:
        return None  # "saves about 20 seconds": a duration beside the word, and no save
    if not every and whole_s and saves * save < LONG_SAVE * whole_s:
        return None
    per_step = save / every if every else None
    gain = facts.gain(0.7 * per_step, per_step, "save time over the steps between saves") if per_step and step else None
    return Finding(
        headline=f"Each checkpoint takes {ms(save)}" + (f", every {every:.0f} steps." if every else "."),
        confidence=0.8 if every and step else 0.6,
        gain=gain,
        because=(
            facts.because(
                f"the log shows {facts.number(logged.SAVES):.0f} saves of {ms(save)}", logged.SAVE_TIME, logged.SAVES
            ),
        ),
        fixes=_fixes(gain),
        avoid="Do not look at single slow steps before taking out those that save.",
        next=(TRAIN_LOG,),
    )


def _logged_s(facts: StepFacts) -> float:
    """How long the log goes on, by its own steps."""
    series = max(facts.evidence.series(logged.STEP_TIME), key=lambda s: len(s.x), default=None)
    if series is None or len(series.x) < 2:
        return 0.0
    return float(series.x[-1] - series.x[0] + 1) * facts.step_s if series.over == "step" else 0.0


def _fixes(worth: Gain | None) -> tuple[Fix, ...]:
    return (
        Fix(
            "save asynchronously: copy to pinned memory, write from another thread (dcp.async_save)",
            worth,
            cost="host memory for one copy",
            risk="a crash during the write loses that checkpoint",
        ),
        Fix("write sharded, to local disk, and upload later", worth, cost="local disk"),
        Fix("save less often", worth, risk="more work lost at a crash"),
    )


# Saving that blocks the loop, while only suspected.


def _at_saves(evidence: Evidence) -> bool | None:
    period, every = evidence.value(change.STALL_PERIOD), evidence.value(run.SAVE_EVERY)
    return abs(period - every) < 0.1 * every


def _stated_at_saves(evidence: Evidence) -> bool | None:
    return abs(evidence.value(stated.PERIOD_STEPS) - evidence.value(run.SAVE_EVERY)) < 0.1 * evidence.value(
        run.SAVE_EVERY
    )


def _saves_logged(evidence: Evidence) -> bool | None:
    return bool(evidence.all(run.SAVES) or evidence.all(run.SAVE_EVERY))


CLUES = (
    Clue((logged.SAVES,), lambda e: e.value(logged.SAVES) > 0, "hint", "the log shows saves"),
    Clue((change.STALL_PERIOD,), _saves_logged, "fair", "the log tells of saves", "the log tells of no save"),
    yes(run.DIED_IN_SAVE, "decisive when seen", "the log ends in an error right after a save began"),
    above(run.SAVE_TIME, 60.0, "fair when seen", "one save takes minutes", "a save is short"),
    Clue((change.STALL_PERIOD, run.SAVE_EVERY), _at_saves, "decisive, needed", "slow steps come with the saves", "slow steps do not come with the saves"),
    above(change.STALL_AT_SAVE, 0.6, "decisive, needed", "slow steps come right after a save", "slow steps do not come with the saves"),
    above(change.STALL_AT_EVAL, 0.6, "against", "slow steps come with evaluations"),
    Clue((stated.PERIOD_STEPS, run.SAVE_EVERY), _stated_at_saves, "decisive, needed", "the period is that of the saves", "the period is not that of the saves"),
    yes(stated.CHECKPOINTING, "strong, needed", "a checkpoint was being written", "no checkpoint was being written"),
    above(change.STALL_AT_GC, 0.5, "against", "slow steps coincide with garbage collection"),
    above(change.STALL_IN_DATA, 0.5, "against", "slow steps wait for data"),
    yes(run.GC_AUTOMATIC, "against", "collection is automatic"),
)  # fmt: skip
