"""The host stops to wait for the device, and the device then idles until the host has caught up.

## What it means
Reading a device value (`.item()`, `.cpu()`, `nonzero`, printing a loss, branching on a tensor) makes the host wait
until all queued work is done. When it goes on, the queue is empty: the device has nothing to do until the next
launches arrive.

## Why it costs
The wait itself is free, since the device works meanwhile. What costs is the lead that the host loses: every gap after
the wait that the lead would have hidden.

## What else looks so
A wait at the end of a step that the device limits is harmless however long it is. A host that launches too slowly
idles the device with or without waits: that is `launch-bound`, and removing reads wins little there.

## Fix
Keep values on the device and read them every N steps; copy them asynchronously and look one step later; replace data-
dependent shapes (`nonzero`, boolean masks) by fixed ones; drop `torch.cuda.synchronize()` from the loop.

## How the gain is found
Idle time after each wait, up to the time that wait lasted (the lead it took), summed. The low end takes 0.6 of it,
since some of it returns as launch time.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue, above, over
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.doctor.findings.step_facts import NOTICEABLE, StepFacts, bytes_text, ms
from stallwise.evidence.capture import NSYS, PY_SPY
from stallwise.evidence.catalog import gains, run
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

LONG_STANDSTILL = 0.1  # of the step; less may be the end of a recording
FETCHED = 2.0  # times the bytes sent to the device: results, not a shuttle
FREES_DOMINATE = 50.0  # times the time of allocations: mapping memory costs both alike, waiting costs only the free
HALF = 0.5
CERTAIN = 0.6  # of the gain: part of the idle time comes back as launch time
PLAIN = {
    "aten::_local_scalar_dense": ".item() (a tensor's value read on the host)",
    "aten::item": ".item() (a tensor's value read on the host)",
    "aten::nonzero": "nonzero (a shape that depends on data)",
    "aten::masked_select": "a boolean mask (a shape that depends on data)",
    "aten::copy_": "a blocking copy (.cpu() or .to())",
    "aten::is_nonzero": "a branch on a tensor",
}


@rule(s.SYNC_WAIT, s.STEP_TIME)
def host_sync(evidence: Evidence) -> Finding | None:
    """Looks for idle time that waits caused, implicit ones included."""
    facts = StepFacts(evidence)
    frees = _waits_in_frees(facts)
    # Reads that wait for nothing still cost the host their calls, which a step pays whose pace the host sets.
    idle = facts.seconds(s.SYNC_WAIT) + frees
    cost = max(idle, facts.seconds(gains.NO_SYNC))
    if facts.share(cost) < NOTICEABLE:
        return _results_fetched(facts) or _without_record(facts)
    gain = facts.replayed(
        gains.NO_ALLOCATION if frees > HALF * cost else gains.NO_SYNC,
        CERTAIN * cost,
        cost,
        "idle time after each wait, up to the lead that the wait took",
    )
    caller = facts.word(s.SYNC_CALLER)
    plain = PLAIN.get(caller, caller or "a synchronising call")
    count = facts.number(s.SYNC_COUNT)
    because = [
        facts.because(f"{count:.0f} synchronising calls a {facts.unit}, the costliest in {plain}", s.SYNC_COUNT),
        facts.because(f"the device is idle {ms(idle)} right after them, with nothing queued", s.SYNC_WAIT),
    ]
    fixes = [
        Fix(f"take {plain} out of the loop, or read it every 50 steps", gain, cost="a few lines"),
        Fix("copy the value with non_blocking=True and read it one step later", gain, cost="values arrive a step late"),
        Fix("replace data-dependent shapes by padded ones", gain, cost="model changes"),
    ]
    if frees > HALF * cost:
        calls = facts.number(s.ALLOC_CALLS)
        because = [
            facts.because(
                f"{ms(frees)} a {facts.unit} in frees of device memory, each of which waits for the device", s.FREE_WAIT
            )
        ]
        because.append(
            facts.because(
                f"{calls:.0f} allocation and free calls a {facts.unit}; allocating itself is cheap here", s.ALLOC_CALLS
            )
        )
        fixes = [
            Fix(
                "let the caching allocator keep memory (no PYTORCH_NO_*_MEMORY_CACHING, no empty_cache())",
                gain,
                cost="memory stays held",
            )
        ]
    harmless = facts.seconds(s.SYNC_HARMLESS)
    return Finding(
        headline=f"The host stops to wait for the GPU, which then idles {ms(idle)} of every {ms(facts.step_s)}."
        if idle > HALF * cost
        else f"Reading values of the GPU costs the host {ms(cost)} of every {ms(facts.step_s)}; the GPU idles {ms(idle)} of it.",
        confidence=0.85,
        category=Category.HOST_WAIT,
        gain=gain,
        because=tuple(because),
        fixes=tuple(fixes),
        not_here=(facts.because(f"{ms(harmless)} more in such calls only wait for queued work", s.SYNC_HARMLESS),)
        if facts.share(harmless) > NOTICEABLE
        else (),
        avoid="Do not measure the host's time in the call: most of it is the device working.",
        next=(PY_SPY,),
        explains=("allocator-churn",) if frees else (),
    )


def _waits_in_frees(facts: StepFacts) -> float:
    """Idle time in frees, where freeing dwarfs allocating: then it is the wait inside the free that costs."""
    free, allocate = facts.seconds(s.FREE_WAIT), facts.seconds(s.MALLOC_WAIT)
    return facts.seconds(s.ALLOC_WAIT) if free > FREES_DOMINATE * allocate and facts.share(free) >= NOTICEABLE else 0.0


def _results_fetched(facts: StepFacts) -> Finding | None:
    """Bulk results are copied to the host and waited for, with nothing coming back."""
    stall, fetched = facts.seconds(s.COPY_STALL), facts.number(s.TO_HOST_BYTES)
    sent, unsized = facts.number(s.TO_DEVICE_BYTES), fetched + facts.number(s.TO_DEVICE_BYTES) <= 0
    if unsized:  # copies without their bytes are weighed by their time
        fetched, sent = facts.seconds(s.TO_HOST_TIME), facts.seconds(s.TO_DEVICE_TIME)
    if facts.share(stall) < NOTICEABLE or fetched < FETCHED * sent:
        return None
    gain = facts.gain(CERTAIN * stall, stall, "copies to the host that nothing hides, and the waits they force")
    return Finding(
        headline=f"Results are copied to the host and waited for: {ms(stall)} of every {ms(facts.step_s)}.",
        confidence=0.8,
        category=Category.COPY,
        gain=gain,
        because=(
            facts.because(
                f"copies to the host take {ms(fetched)} a {facts.unit}"
                if unsized
                else f"{bytes_text(fetched)} go to the host each {facts.unit} and do not come back",
                s.TO_HOST_TIME if unsized else s.TO_HOST_BYTES,
            ),
            facts.because(f"{ms(stall)} of that is exposed", s.COPY_STALL),
        ),
        fixes=(
            Fix("reduce on the device and fetch only the result", gain, cost="a few lines"),
            Fix("copy into pinned memory with non_blocking=True and read it a step later", gain, cost="pinned memory"),
        ),
        avoid="Do not speed up what the host does with it before asking whether all of it is needed.",
    )


def _without_record(facts: StepFacts) -> Finding | None:
    """The host stands in a synchronisation while the trace shows an idle device."""
    lost = facts.seconds(s.UNRECORDED_WAIT)
    if facts.share(lost) < LONG_STANDSTILL:
        return None
    return Finding(
        headline=f"The host stands in a synchronisation while the GPU shows no work: {ms(lost)} of every {ms(facts.step_s)}.",
        confidence=0.55,
        category=Category.OTHER,
        gain=facts.gain(0.0, lost, "nothing if the work is merely missing from the trace, all of it if not"),
        because=(facts.because(f"{ms(lost)} inside synchronising calls with an idle device", s.UNRECORDED_WAIT),),
        against=(Reason("the next work was queued already: kernels of replayed graphs may be missing from the trace"),),
        fixes=(Fix("take the synchronisation out of the loop and trace again", cost="a few lines"),),
        avoid="Do not trust the idle share before the missing work is found.",
        next=(NSYS, PY_SPY),
    )


# Synchronisation inside the step, while only suspected.


def _called_by_host(evidence: Evidence) -> bool | None:
    caller = evidence.text(run.SYNC_CALLER)
    return any(w in caller for w in ("item", "scalar", "nonzero", "Synchronize", "cpu"))


CLUES = (
    above(run.SYNC_SHARE, 0.05, "strong, needed", "a good part of host time is spent in synchronisation", "synchronisation takes little time"),
    over(run.SYNC_TIME, run.STEP_TIME, 0.08, "fair", "each step blocks in a synchronisation", "steps hardly block"),
    Clue((run.SYNC_CALLER,), _called_by_host, "fair when seen", "the caller reads a value back every step"),
    above(run.SYNC_REMOVED_GAIN, 0.08, "decisive, needed", "the same run without the synchronisation is faster", "removing the synchronisation wins next to nothing"),
    above(run.DEVICE_SHARE, 0.92, "forbids", "the device is busy all the time: the host only waits for queued work", "the device has idle time"),
    above(run.HOST_UNEXPLAINED_SHARE, 0.5, "against", "most of the time is elsewhere"),
)  # fmt: skip
