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

from stallwise.evidence.capture import GC_LOG, PY_SPY
from stallwise.evidence.catalog import run as logged
from stallwise.evidence.catalog import step as s
from stallwise.evidence.catalog.stated import PERIOD_STEPS
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Account
from stallwise.findings.clue import Clue
from stallwise.findings.finding import Finding, Fix, Gain
from stallwise.findings.rule import rule
from stallwise.findings.step_facts import NOTICEABLE, StepFacts, ms

SCHEDULED = 0.1  # of the pauses stay when collection runs every few hundred steps
LONG_PAUSE_S = 0.02  # a full collection that anybody notices in a step

CLUES = (
    Clue((PERIOD_STEPS,), lambda e: e.value(PERIOD_STEPS) > 1, "hint when seen", "slow steps come at an even period"),
)
FIXES = (
    "gc.freeze() after set-up and gc.disable() in the loop",
    "gc.collect() every few hundred steps, on all ranks at once",
)


@rule()
def python_gc_pauses(evidence: Evidence) -> Finding | None:
    """Looks for the collector's frame in a trace, or its pauses in a log."""
    facts = StepFacts(evidence)
    seen = facts.seconds(s.GC_WAIT)
    if facts.word(s.SILENT_SUSPECT) == "garbage collection":
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
        account=Account.HOST_WAIT if gain else None,
        gain=gain,
        because=because,
        fixes=tuple(
            Fix(text, gain, cost="one line", risk="memory of cycles until the next collection") for text in FIXES
        ),
        avoid="Do not blame storage: the pause is on the host's main thread, outside the loader.",
        next=(GC_LOG, PY_SPY),
        explains=("host-work-unattributed",),
    )
