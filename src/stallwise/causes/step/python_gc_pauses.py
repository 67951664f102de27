"""Python's garbage collector stops the main thread, and the device runs dry.

## What it means
The collector walks every container object of the process. With millions of live objects (a dataset in Python lists, a
large graph) one full pass takes from tens of milliseconds to seconds, and the main thread launches nothing meanwhile.

## Why it costs
The pause is idle time of the device. In a job of many ranks the collectors run at different steps, so nearly every
step waits for some rank.

## What else looks so
Slow storage and checkpoints also pause at a period, but inside the loader or around copies to the host. Any silent
host work looks the same in a trace without Python frames: then it is `host-work-unattributed` until a log or a sample
names the collector.

## Fix
`gc.freeze()` after set-up, `gc.disable()` in the loop and `gc.collect()` every few hundred steps on all ranks
together. Keep large data in arrays, not in Python objects.

## How the gain is found
The idle time under the collector's frame, or the logged pause times its frequency; the low end keeps a tenth for the
collections that are scheduled instead.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue, above, yes
from stallwise.doctor.findings.finding import Finding, Fix, Gain, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.doctor.findings.step_facts import NOTICEABLE, StepFacts, ms
from stallwise.evidence.capture import GC_LOG, PY_SPY
from stallwise.evidence.catalog import change, run
from stallwise.evidence.catalog import run as logged
from stallwise.evidence.catalog import step as s
from stallwise.evidence.catalog import workers as w
from stallwise.evidence.catalog.distributed import JOB_STEP
from stallwise.evidence.catalog.stated import PERIOD_STEPS
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

SCHEDULED = 0.1  # of the pauses stay when collection runs every few hundred steps
SELDOM = 0.5  # of workers and steps: pauses more frequent than this are no collections
LONG_PAUSE_S = 0.02  # a full collection that anybody notices in a step

FIXES = (
    "gc.freeze() after set-up and gc.disable() in the loop",
    "gc.collect() every few hundred steps, on all ranks at once",
)


@rule()
def python_gc_pauses(evidence: Evidence) -> Finding | None:
    """Looks for pauses of single workers, for the collector's frame in a trace, or its pauses in a log."""
    if (out_of_step := _out_of_step(evidence)) is not None:
        return out_of_step
    facts = StepFacts(evidence)
    seen = facts.seconds(s.GC_WAIT)
    if facts.word(s.SILENT_REASON) == "garbage collection":
        seen += facts.seconds(s.SILENT_WAIT)
    pause = facts.seconds(logged.GC_PAUSE)
    if facts.share(seen) >= NOTICEABLE:
        gain: Gain | None = facts.gain((1 - SCHEDULED) * seen, seen, "idle time under the collector's frame")
        idles = "that is" if facts.on_host else "the GPU idles"
        headline = f"Garbage collection stops the host: {idles} {ms(seen)} of every {ms(facts.step_s)}."
        because = (
            facts.because(
                f"the collector runs while {'nothing else' if facts.on_host else 'no kernel'} does, {ms(seen)} a {facts.unit}",
                s.GC_WAIT,
                s.SILENT_PLACE,
            ),
        )
        confidence = 0.93
    elif pause >= max(LONG_PAUSE_S, NOTICEABLE * facts.step_s):
        gain = None
        headline = f"Garbage collection pauses the host for {ms(pause)} at a time."
        count = facts.number(logged.GC_COLLECTIONS)
        because = (
            facts.because(
                f"{count:.0f} full collections logged, {ms(pause)} each", logged.GC_PAUSE, logged.GC_COLLECTIONS
            ),
        )
        confidence = 0.85
    else:
        return None
    return Finding(
        headline=headline,
        confidence=confidence,
        category=Category.HOST_WAIT if gain else None,
        gain=gain,
        because=because,
        fixes=tuple(
            Fix(text, gain, cost="one line", risk="memory of cycles until the next collection") for text in FIXES
        ),
        avoid="Do not blame storage: the pause is on the host's main thread, outside the loader.",
        next=(GC_LOG, PY_SPY),
        explains=("host-work-unattributed",),
    )


# Garbage collection in the loop, while only suspected.


def _rare_and_regular(evidence: Evidence) -> bool | None:
    """Full collections come after a fixed number of allocations: a long, steady period."""
    return evidence.value(change.STALL_PERIOD) > 20 and evidence.value(change.STALL_REGULARITY) > 0.6


CLUES = (
    Clue((PERIOD_STEPS,), lambda e: e.value(PERIOD_STEPS) > 1, "hint when seen", "slow steps come at an even period"),
    above(change.STALL_AT_GC, 0.5, "decisive, needed", "slow steps coincide with full collections", "slow steps fall between collections"),
    above(run.GC_COLLECTIONS, 1, "strong", "full collections are logged inside the loop"),
    yes(run.GC_AUTOMATIC, "fair, needed", "automatic collection is on and nothing is frozen", "automatic collection is off or frozen"),
    Clue((change.STALL_PERIOD, change.STALL_REGULARITY), _rare_and_regular, "hint",
         "slow steps come rarely and at a steady period", "slow steps come often or at random"),
    above(change.STALL_AT_SAVE, 0.6, "against", "slow steps come with the saves"),
    above(change.STALL_AT_EVAL, 0.6, "against", "slow steps come with evaluations"),
    above(change.STALL_IN_DATA, 0.5, "against", "slow steps wait for data"),
)  # fmt: skip


def advise(evidence: Evidence) -> Finding:
    """Collect at chosen steps on all ranks together."""
    pause, period, excess = (evidence.get(q) for q in (run.GC_PAUSE, change.STALL_PERIOD, change.STALL_EXCESS))
    share = evidence.get(change.STALL_SHARE)
    slow = excess or pause
    cost_s = slow.number / period.number if slow and period and period.number > 0 else float("nan")
    gain = Gain(0.7 * cost_s, cost_s, "the slow steps' excess, spread over a period") if cost_s > 0 else None
    because = [Reason.of(f"one full collection takes {pause}", pause)] if pause else []
    if excess and period:
        because.append(
            Reason.of(
                f"about every {period} steps one takes {excess} longer{f', {share} of all time' if share else ''}",
                excess,
                period,
            )
        )
    return Finding(
        headline="Python's garbage collector stops the loop now and then.",
        confidence=0.0,
        because=tuple(because),
        gain=gain,
        fixes=(
            Fix("gc.disable() and gc.collect(1) at the same chosen steps on every rank", gain, worth="no surprise pauses; ranks pause together", cost="two lines",
                risk="cycles pile up between collections"),
            Fix("gc.freeze() after set-up, so that long-lived objects are not walked again", worth="shorter collections", cost="one line", risk="frozen cycles are never freed"),
            Fix("Raise the thresholds: gc.set_threshold(50000, 50, 50)", worth="fewer full collections", cost="one line", risk="memory grows a little"),
        ),
        avoid="Hunting for slow storage or network: the pause has no input, output or collective in it.",
        next=(GC_LOG, PY_SPY),
    )  # fmt: skip


def _out_of_step(evidence: Evidence) -> Finding | None:
    """Workers stand still at different steps, and each time all others wait."""
    cost, often, one = (evidence.get(x) for x in (w.PAUSE_COST, w.PAUSE_OFTEN, w.PAUSE_ONE))
    step = evidence.get(JOB_STEP)
    if not (cost and often and one and step) or cost.number < NOTICEABLE * step.number or often.number > SELDOM:
        return None
    gain = Gain((1 - SCHEDULED) * cost.number, cost.number, "replayed without the pauses")
    reasons = (
        Reason.of(
            f"in {often} of all workers and steps the host stands still; nothing it waits for explains that", often
        ),
        Reason.of(f"the worker with most pauses ({one.note}) has {one} of them", one),
    )
    return Finding(
        headline=f"Workers pause out of step: the job waits {cost} of every {step} for whoever stands still.",
        confidence=0.93,
        gain=gain,
        because=reasons,
        fixes=tuple(
            Fix(text, gain, cost="one line", risk="memory of cycles until the next collection") for text in FIXES
        ),
        avoid="Replacing nodes: the pauses go round.",
        next=(GC_LOG, PY_SPY),
        explains=("host-work-unattributed", "exposed-communication", "pipeline-bubble"),
    )
