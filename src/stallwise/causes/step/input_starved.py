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
prefetch, pin memory, and move costly transforms (decoding, tokenising) out of the step, once and offline, or onto the
GPU (DALI, Kornia). Check the
CPU quota of the container.

## How the gain is found
The steps are replayed with every batch ready when it is asked for. The loader time hidden behind kernels wins nothing
there, and what the wait itself hid shows. The range is that of measured over replayed gains.
"""

from __future__ import annotations

from math import ceil

from stallwise.doctor.findings.clue import Clue, above, below, says_one_of, yes
from stallwise.doctor.findings.finding import Finding, Fix, Gain, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.doctor.findings.step_facts import NOTICEABLE, StepFacts, ms, percent
from stallwise.evidence.capture import DATA_PROBE, PY_SPY, TORCH_TRACE
from stallwise.evidence.catalog import change, gains, run, stated
from stallwise.evidence.catalog import run as logged
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category
from stallwise.late import np

MOST_STEPS = 0.6  # of the steps must wait for the mean rate to be the trouble
# Workers deliver together, so a starved loop with two of them waits in every second step. Two waits that take more than half
# of the time are no single late read: the loader made as many batches as it could, and they were too few.
TOO_FEW_BATCHES = 0.5
FEW_WAITS = 2
HAND_OVER = 0.08  # of the wait stays: queues and pinning between worker and main process

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
        category=Category.INPUT_WAIT,
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
            *_more_workers(
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


def _more_workers(facts: StepFacts, wanted: int, alone: bool, why: str, gain: Gain) -> tuple[Fix, ...]:
    """As many as the batch needs, never more than the machine has cores; none where it has as many already."""
    cores, have = facts.evidence.value(logged.CPU_CORES), facts.evidence.value(logged.LOADER_WORKERS, 0.0)
    start = "0 -> " if alone else f"{have:.0f} -> " if have else "up to "
    wanted = max(wanted, int(have) + 1)
    if cores == cores and wanted > cores - 1:
        enough = max(1, int(cores) - 1)
        if enough <= have:
            return ()
        part = facts.gain(
            0.0, gain.high_s * min(1.0, (enough - have) / (wanted - have)), "the wait, as far as these cores go"
        )
        return (Fix(f"num_workers {start}{enough}: all that {cores:.0f} cores carry, where {wanted} would be needed ({why})",
                    part, cost="CPU cores and host memory", risk="the cores stay the limit: make a sample cheaper as well"),)  # fmt: skip
    return (Fix(f"num_workers {start}{wanted} ({why})", gain, cost="CPU cores and host memory", risk="none if the dataset is picklable"),)  # fmt: skip


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


# Input that does not keep up, while only suspected: from logs, settings and words.


def _crowded(evidence: Evidence) -> bool | None:
    return evidence.value(run.LOADER_WORKERS) > 1.5 * evidence.value(run.CPU_CORES)


def _one_core(evidence: Evidence) -> bool | None:
    busy, idle = evidence.value(run.HOST_BUSY_CORES), evidence.value(run.HOST_IDLE_SHARE, 1.0)
    return 0.8 < busy < 1.3 and idle > 0.8 if busy == busy else None


CLUES = (
    # A loop that is fed finds its next batch waiting: a stack taken at random meets it in the loader as seldom as it is there.
    Clue(
        (logged.STACKS_IN_LOADER,),
        lambda e: e.value(logged.STACKS_IN_LOADER) > 0.5,
        "strong",
        "the main thread stands in the data loader",
    ),
    Clue((logged.GPU_BUSY,), lambda e: e.value(logged.GPU_BUSY) < 0.7, "hint", "the GPU is idle much of the time"),
    above(run.DATA_SHARE, 0.15, "decisive, needed", "a good part of all time goes to fetching batches", "fetching batches takes little time"),
    below(run.LOADER_WORKERS, 1, "fair when seen", "the loader runs in the main process (0 workers)", "the loader has workers of its own"),
    yes(run.ON_THE_FLY, "fair when seen", "samples are prepared while training"),
    Clue((run.LOADER_WORKERS, run.CPU_CORES), _crowded, "fair when seen", "more loader workers than CPU cores", "cores enough for the workers"),
    Clue((run.HOST_BUSY_CORES,), _one_core, "fair when seen", "one core is busy, the rest idle: the work is serial", "the host is not held by one core"),
    yes(stated.GPU_BUSY_UNCHANGED, "strong", "steps grew while the GPU's work did not: the host keeps it waiting", "the GPU itself works longer"),
    says_one_of(stated.CHANGED, ("dataset", "data ", "augment", "tokeniz", "storage", "loader", "disk", "bucket"), "strong when seen", "the data or its storage changed", "neither the data nor its storage changed"),
    above(change.STALL_IN_DATA, 0.5, "against", "the wait comes in bursts: most steps do not wait"),
    yes(run.NETWORK_STORAGE, "hint when seen", "the data lies on a network mount"),
    above(run.HOST_UNEXPLAINED_SHARE, 0.4, "against", "most of the time is in nothing that was timed"),
    yes(run.GC_AUTOMATIC, "against", "collection is automatic"),
    above(run.GC_COLLECTIONS, 1, "against", "collections are logged"),
)  # fmt: skip


def advise(evidence: Evidence) -> Finding:
    """Workers first, then cheaper samples, then storage."""
    share, step = evidence.get(run.DATA_SHARE), evidence.get(run.STEP_TIME)
    workers, cores = evidence.get(run.LOADER_WORKERS), evidence.get(run.CPU_CORES)
    series = next(iter(evidence.series(run.STEP_TIME)), None)
    mean_s = float(series.values.mean()) if series is not None else step.number if step else float("nan")
    wait_s = share.number * mean_s if share and mean_s == mean_s else float("nan")
    gain = Gain(0.5 * wait_s, wait_s, "the logged wait; half if CPU cores are the limit") if wait_s > 0 else None
    first = "Raise num_workers" + (f" from {workers}" if workers else "") + " until the wait stops falling"
    if workers and cores and workers.number > cores.number:
        first = f"Give the job CPU cores: {workers} workers share {cores}; workers beyond the cores only switch"
    because = [Reason.of(f"{share} of all time is spent fetching batches", share)] if share else []
    return Finding(
        headline="The GPU waits for input." if not share else f"The GPU waits for input: {share} of the time.",
        confidence=0.0,
        because=tuple(because),
        gain=gain,
        fixes=(
            Fix(first, gain, worth="the whole wait, if cores are free", cost="CPU cores and host memory", risk="oversubscription beyond the cores"),
            Fix("Make a sample cheaper: decode, tokenise and resize once, offline", gain, worth="the whole wait", cost="disk, one pass over the data",
                risk="less random augmentation"),
            Fix("Decode and augment on the GPU: DALI, nvJPEG, or transforms of whole batches after the copy", worth="the decoding part of the wait",
                cost="GPU memory, and a little of the GPU's time", risk="not bit-identical to the CPU's decoder"),
            Fix("Read ahead: prefetch_factor, pinned memory, persistent workers, local disk in place of a network mount", worth="what is left of the wait",
                cost="host memory", risk="memory grows with workers x prefetch"),
        ),
        avoid="Tuning kernels or buying a faster GPU: it would only wait faster.",
        next=(DATA_PROBE, PY_SPY, TORCH_TRACE),
    )  # fmt: skip
