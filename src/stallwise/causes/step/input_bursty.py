"""Input comes late in bursts: most steps run freely, some wait long.

## What it means
The loader keeps up on average, but now and then a batch takes many times the usual: a cold read from storage, a shard
that is opened, a worker that restarts. The queue of prefetched batches runs dry and the device idles until it
refills.

## Why it costs
The mean looks harmless and the slow steps are lost nearly whole. In a job of many ranks every rank's burst stops all
the others.

## What else looks so
A checkpoint (copies to the host before the silence) and garbage collection (silence outside the loader, at an even
period) also make single slow steps. Waiting in most steps is `input-starved`.

## Fix
Deepen the queue (prefetch factor times workers must cover the longest wait over the step time), stage the next shard
on local disk before it is needed, and give the storage the read size it likes. More workers help only if each has its
own shard.

## How the gain is found
The waits seen in the traced steps, spread over a mean step. A few steps say little about how often a burst comes, so
the low end takes half of them.
"""

from __future__ import annotations

from math import ceil

from stallwise.causes.step.input_starved import rate_too_low
from stallwise.doctor.findings.clue import Clue, above, yes
from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.doctor.findings.rule import rule
from stallwise.doctor.findings.step_facts import NOTICEABLE, StepFacts, ms
from stallwise.evidence.capture import DATA_PROBE, TRAIN_LOG
from stallwise.evidence.catalog import change, run, stated
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

MANY = 10  # steps in which bursts that matter would show more than once
SPARED = 0.5  # of the wait at least: how often rare events come, a few steps tell no better
STEADY = 0.2  # of the longest wait: where even the shortest is longer, there are no steps without a wait


@rule(s.INPUT_WAIT, s.STEP_TIME)
def input_bursty(evidence: Evidence) -> Finding | None:
    """Looks for idle time under the loader in a minority of steps."""
    facts = StepFacts(evidence)
    wait = facts.seconds(s.INPUT_WAIT)
    waiting, steps = facts.steps_with(s.INPUT_WAIT)
    if facts.share(wait) < NOTICEABLE or waiting == 0 or rate_too_low(facts) or steps < 2:
        return None
    if facts.only_at_first(s.INPUT_WAIT):
        return None
    series = facts.series(s.INPUT_WAIT)
    longest = float(series.values.max()) if series is not None else wait
    if series is not None and float(series.values.min()) > STEADY * longest:
        return None  # every step waits alike: a small steady cost, no burst
    if series is not None and steps >= MANY and (series.values > longest / 2).sum() < 2:
        return None  # one late read among many steps is an incident, not a pattern
    median = facts.seconds(s.STEP_MEDIAN)
    gain = facts.gain(
        SPARED * wait,
        wait,
        f"{waiting} of {steps} steps waited; less in the measure that bursts are rarer than in this sample",
    )
    batches = ceil(longest / max(median, 1e-9))
    return Finding(
        headline=f"Input comes late in bursts: {ms(longest)} in {waiting} of {steps} steps, nothing in the others.",
        confidence=0.9 if waiting > 1 else 0.85,
        category=Category.INPUT_WAIT,
        optional=facts.is_optional(gain),
        gain=gain,
        because=(
            facts.because(
                f"{facts.word(s.LOADER_NAME) or 'the loader'} holds the main thread while no kernel runs", s.LOADER_NAME
            ),
            facts.because(f"the other steps take {ms(median)} and do not wait", s.STEP_MEDIAN),
            facts.because("no copies to the host precede the wait, so it is no checkpoint", s.CHECKPOINT_WAIT),
        ),
        fixes=(
            Fix(
                f"keep at least {batches + 1} batches ready (workers x prefetch_factor) so that a {ms(longest)} read is hidden",
                gain,
                cost="host memory",
            ),
            Fix("stage the next shard on local disk, or read ahead in larger blocks", gain, cost="local disk"),
        ),
        avoid="Do not raise the worker count alone: the mean rate is fine, the longest read is not.",
        next=(TRAIN_LOG, DATA_PROBE),
        summary="The mean rate of the loader suffices; single reads do not arrive in time.",
    )


# Input that is late in bursts, while only suspected.
REGULAR = 0.6  # of the gaps between slow steps are alike
MOST_WORKERS = 64  # a rank has hardly more


def _remote_and_idle(evidence: Evidence) -> bool | None:
    workers = evidence.value(run.LOADER_WORKERS)
    return evidence.value(run.NETWORK_STORAGE, 0.0) > 0 and (workers != workers or workers > 0)


def _long_and_regular(evidence: Evidence) -> bool | None:
    """Workers deliver by turns, so that what comes back with a loader comes back after as many steps as there are workers."""
    workers = evidence.value(run.LOADER_WORKERS)
    longest = workers if workers > 0 else MOST_WORKERS
    return evidence.value(change.STALL_REGULARITY) > REGULAR and evidence.value(change.STALL_PERIOD) > longest


CLUES = (
    above(change.STALL_IN_DATA, 0.5, "decisive, needed", "slow steps are slow because their batch is late", "the slow steps do not wait for data"),
    above(change.STALL_AT_SAVE, 0.6, "against", "slow steps come with the saves"),
    above(change.STALL_AT_EVAL, 0.6, "against", "slow steps come with evaluations"),
    above(change.STALL_AT_GC, 0.5, "against", "slow steps coincide with garbage collection"),
    above(run.GC_COLLECTIONS, 1, "against", "collections are logged"),
    yes(run.GC_AUTOMATIC, "against", "collection is automatic"),
    Clue((run.NETWORK_STORAGE,), _remote_and_idle, "strong when seen", "workers read from a network mount, which can stall all of them", "data is local"),
    Clue((change.STALL_PERIOD, change.STALL_REGULARITY), _long_and_regular, "against", "slow steps come back after more steps than a loader has workers", "slow steps come at random, or as often as workers take turns"),
    yes(stated.BURSTY, "fair", "slow steps come in bursts", "all steps are slow alike"),
)  # fmt: skip
