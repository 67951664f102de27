"""The device sits idle because the next batch is not ready.

## What it means
The main thread asks the loader for a batch and blocks. It cannot launch the next step, the device finishes what was
queued, and then nothing runs until the batch arrives. This happens in most steps, so the loader's rate is the job's
rate.

## Why it costs
Launches are asynchronous: the part of the loader's time that passes while kernels still run is free. The rest is
lost, second for second, and a faster GPU only makes it worse.

## What else looks so
A read of a device value inside the collate function waits for queued kernels and is no loader time. A slow first
epoch with a cold cache recovers by itself. Waits in a few steps only are `input-bursty`: storage or too few workers,
not the mean rate.

## Fix
Give the loader processes: as many workers as one batch's build time over the step's compute time, plus one. Then
prefetch, pin memory, and move costly transforms (decoding, tokenising) out of the step, once and offline. Check the
CPU quota of the container.

## How the gain is found
The steps are replayed with every batch ready when it is asked for. The loader time hidden behind kernels wins nothing
there, and what the wait itself hid shows. The range is that of measured over replayed gains.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from stallwise.evidence.capture import DATA_PROBE, PY_SPY
from stallwise.evidence.catalog import gains
from stallwise.evidence.catalog import run as logged
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Account
from stallwise.findings.clue import Clue
from stallwise.findings.finding import Finding, Fix, Gain, Reason
from stallwise.findings.rule import rule
from stallwise.findings.step_facts import NOTICEABLE, StepFacts, ms, percent

MOST_STEPS = 0.6  # of the steps must wait for the mean rate to be the trouble
# Workers deliver together, so a starved loop with two of them waits in every second step. Two waits that take more than half
# of the time are no single late read: the loader made as many batches as it could, and they were too few.
TOO_FEW_BATCHES = 0.5
FEW_WAITS = 2
HAND_OVER = 0.08  # of the wait stays: queues and pinning between worker and main process

CLUES = (
    # A loop that is fed finds its next batch waiting: a stack taken at random meets it in the loader as seldom as it is there.
    Clue(
        (logged.STACKS_IN_LOADER,),
        lambda e: e.value(logged.STACKS_IN_LOADER) > 0.5,
        "strong",
        "the main thread stands in the data loader",
    ),
    Clue((logged.GPU_BUSY,), lambda e: e.value(logged.GPU_BUSY) < 0.7, "hint", "the GPU is idle much of the time"),
)
MOST_WORKERS = 1024.0  # no host has more; beyond it the times are damage


@rule(s.INPUT_WAIT, s.STEP_TIME)
def input_starved(evidence: Evidence) -> Finding | None:
    """Looks for idle time under the loader in most steps."""
    facts = StepFacts(evidence)
    wait = facts.seconds(s.INPUT_WAIT)
    waiting, steps = facts.steps_with(s.INPUT_WAIT)
    if facts.share(wait) < NOTICEABLE or not rate_too_low(facts):
        return None
    compute, loader = facts.seconds(s.BUSY_TIME), facts.seconds(s.LOADER_TIME)
    name = facts.word(s.LOADER_NAME)
    alone = "SingleProcess" in name
    gain = facts.replayed(
        gains.NO_INPUT_WAIT,
        (1 - HAND_OVER) * wait,
        wait,
        "the idle time under the loader; the low end leaves the hand-over",
    )
    workers = max(2, ceil(min(loader / max(facts.step_s - wait, 1e-9), MOST_WORKERS)) + 1)
    return Finding(
        headline=f"The {'loop' if facts.on_host else 'GPU'} waits for input: {ms(wait)} of every {ms(facts.step_s)}.",
        confidence=0.97 if steps >= 3 else 0.9,
        account=Account.INPUT_WAIT,
        optional=facts.is_optional(gain),
        gain=gain,
        because=(
            facts.because(
                f"{_plain(name)} holds the main thread {ms(loader)} a {facts.unit}; idle in {waiting} of {steps}",
                s.LOADER_TIME,
            ),
            *_unhidden(facts, loader, wait),
        ),
        fixes=(
            _more_workers(
                facts, workers, alone, f"{ms(loader)} a batch against {ms(facts.step_s - wait)} of work", gain
            ),
            Fix(
                "move the costliest transform out of __getitem__ (pre-decode, pre-tokenise, cache)",
                gain,
                cost="one preprocessing run",
            ),
            Fix(
                "prefetch_factor 4, persistent_workers=True"
                if facts.on_host
                else "pin_memory=True, prefetch_factor 4, persistent_workers=True",
                cost="host memory",
            ),
        ),
        not_here=_not_here(facts, compute),
        avoid=f"Do not start with the model{'' if facts.on_host else ' or the GPU'}: any speed-up there only lengthens the wait.",
        next=(DATA_PROBE, PY_SPY),
        summary=_summary(facts, alone, loader, wait),
    )


def _unhidden(facts: StepFacts, loader: float, wait: float) -> tuple[Reason, ...]:
    """That nothing goes on meanwhile; a record of the host alone has said so already."""
    if facts.on_host:
        return ()
    return (
        facts.because(f"no kernel runs for {ms(wait)} of it and none is queued", s.INPUT_WAIT),
        facts.because(f"{ms(max(loader - wait, 0))} of the loader's time hide behind kernels", s.BUSY_TIME),
    )


def _more_workers(facts: StepFacts, wanted: int, alone: bool, why: str, gain: Gain) -> Fix:
    """As many as the batch needs, never more than the machine has cores."""
    cores = facts.evidence.value(logged.CPU_CORES)
    start = "0 -> " if alone else "up to "
    if cores == cores and wanted > cores - 1:
        enough = max(1, int(cores) - 1)
        part = facts.gain(0.0, gain.high_s * min(1.0, enough / wanted), "the wait, as far as these cores go")
        return Fix(f"num_workers {start}{enough}: all that {cores:.0f} cores carry, where {wanted} would be needed ({why})",
                   part, cost="CPU cores and host memory", risk="the cores stay the limit: make a sample cheaper as well")  # fmt: skip
    return Fix(
        f"num_workers {start}{wanted} ({why})",
        gain,
        cost="CPU cores and host memory",
        risk="none if the dataset is picklable",
    )


def rate_too_low(facts: StepFacts) -> bool:
    """Whether the loader's mean rate is the trouble, rather than single late reads."""
    waiting, steps = facts.steps_with(s.INPUT_WAIT)
    if waiting >= MOST_STEPS * steps:
        return True
    often, share = _once_it_waits(facts)
    return (waiting > FEW_WAITS and often >= MOST_STEPS) or (waiting >= FEW_WAITS and share > TOO_FEW_BATCHES)


def _once_it_waits(facts: StepFacts) -> tuple[float, float]:
    """From the first wait on, the part of the steps that wait and of the time they do: before it the loop lived on batches
    made ahead, and its length says nothing of the loader's rate."""
    waits, steps = facts.series(s.INPUT_WAIT), facts.series(s.STEP_TIME)
    if waits is None or steps is None or len(waits.values) != len(steps.values):
        return 0.0, facts.share(facts.seconds(s.INPUT_WAIT))
    late = waits.values > NOTICEABLE * float(np.median(steps.values))
    first = int(np.argmax(late))
    spent = max(float(steps.values[first:].sum()), 1e-12)
    return float(late[first:].mean()), float(waits.values[first:].sum()) / spent


def _plain(name: str) -> str:
    return name.split("#")[-1] if "DataLoader" in name else name or "the loader"


def _summary(facts: StepFacts, alone: bool, loader: float, wait: float) -> str:
    who = "The loader runs in the main process and" if alone else "The loader"
    hidden = loader - wait
    if hidden < NOTICEABLE * facts.step_s:
        return f"{who} needs {ms(loader)} for a batch, and nothing hides it."
    return f"{who} needs {ms(loader)} for a batch; {ms(hidden)} of that hide behind kernels, the rest does not."


def _not_here(facts: StepFacts, busy: float) -> tuple[Reason, ...]:
    who = "the job computes" if facts.on_host else "GPU busy"
    found = [facts.because(f"{who} only {percent(facts.share(busy))} of the time: a symptom of the wait", s.BUSY_TIME)]
    harmless = facts.seconds(s.SYNC_HARMLESS)
    if facts.share(harmless) > NOTICEABLE:
        found.append(
            facts.because(
                f"{ms(harmless)} a {facts.unit} in synchronising calls: they only wait for queued work", s.SYNC_HARMLESS
            )
        )
    return tuple(found)
