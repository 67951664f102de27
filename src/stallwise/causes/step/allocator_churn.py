"""Device memory is allocated and freed inside the loop.

## What it means
The caching allocator should serve every step from memory it already holds. When sizes change, memory is nearly full
or somebody empties the cache, it calls the driver to allocate and free instead, and each free waits for the device.

## Why it costs
Driver calls take from a tenth to many milliseconds, and frees synchronise, so the host loses its lead each time. Near
the limit, retries flush the whole cache.

## What else looks so
The first steps always allocate. A few calls a step that run while kernels are queued cost nothing.

## Fix
Remove `empty_cache()` from the loop; set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`; run the largest shape
first; bucket shapes; lower the peak if retries occur.

## How the gain is found
Idle time inside allocation calls and after the waits they force.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import above
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.doctor.findings.step_facts import NOTICEABLE, StepFacts, ms
from stallwise.evidence.capture import MEMORY_SNAPSHOT, MEMORY_SUMMARY
from stallwise.evidence.catalog import change, gains, memory, run
from stallwise.evidence.catalog import run as logged
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

IN_THE_LOOP = 0.01  # taken and given back, times a launch: a warm caching allocator does so once in many thousands
LARGE_PART = 1 / 3  # of the host's time in CUDA calls: less may pass while the device works off what was launched
MIN_CALLS = 1  # a step: a warm allocator makes none
MANY_RETRIES = 10  # in a summary of the allocator: one or two fall to the first steps, which find the sizes

MANY_FREES = 20  # segments given back in one record: one empty_cache() after loading gives back fewer
FREED_SHARE = 0.5  # of those taken


def flushed(taken: float, back: float) -> bool:
    """A warm cache keeps its segments; one that returns most of what it takes is flushed again and again."""
    return back >= MANY_FREES and back > FREED_SHARE * taken


@rule()
def allocator_churn(evidence: Evidence) -> Finding | None:
    """Looks for idle time in allocation calls, or for logged retries."""
    facts = StepFacts(evidence)
    calls, lost = facts.number(s.ALLOC_CALLS), facts.seconds(s.ALLOC_WAIT)
    retries, summed = facts.number(logged.ALLOC_RETRIES), evidence.value(memory.RETRIES, 0.0)
    counted = logged.ALLOC_RETRIES
    if not retries > 0 and summed >= MANY_RETRIES and not evidence.value(memory.OOMS, 0.0) > 0:
        retries, counted = summed, memory.RETRIES
    if calls >= MIN_CALLS and facts.share(lost) >= NOTICEABLE:
        gain = facts.replayed(gains.NO_ALLOCATION, 0.7 * lost, lost, "idle time inside allocation calls")
        return Finding(
            headline=f"Device memory is allocated inside the loop: the GPU idles {ms(lost)} of every {ms(facts.step_s)}.",
            confidence=0.88,
            category=Category.HOST_WAIT,
            gain=gain,
            because=(
                facts.because(
                    f"{calls:.0f} allocation and free calls a {facts.unit}, {ms(facts.seconds(s.ALLOC_TIME))} of host time",
                    s.ALLOC_CALLS,
                ),
                facts.because(f"no kernel runs for {ms(lost)} of it", s.ALLOC_WAIT),
            ),
            fixes=_fixes(),
            avoid="Do not add empty_cache(): it causes exactly this.",
            next=(MEMORY_SUMMARY, MEMORY_SNAPSHOT),
        )
    if retries > 0:
        return Finding(
            headline=f"The allocator flushed its cache and retried {retries:.0f} times.",
            confidence=0.85,
            because=(facts.because(f"{retries:.0f} allocation retries logged", counted),),
            fixes=_fixes(),
            avoid="Do not add empty_cache(): it causes exactly this.",
            next=(MEMORY_SUMMARY, MEMORY_SNAPSHOT),
        )
    taken, back = evidence.get(memory.SEGMENT_ALLOCS), evidence.get(memory.SEGMENT_FREES)
    if taken is not None and back is not None and flushed(taken.number, back.number):
        return Finding(
            headline=f"The allocator gives its segments back to the device and takes them again: {back} of {taken} freed.",
            confidence=0.8,
            because=(
                Reason.of(
                    f"{taken} segments are taken from the device and {back} given back within {taken.samples:,} entries",
                    taken,
                    back,
                ),
            ),
            fixes=_fixes(),
            avoid="Do not add empty_cache(): it causes exactly this.",
            next=(MEMORY_SUMMARY,),
        )
    often, share = evidence.get(logged.ALLOCS_PER_LAUNCH), evidence.get(logged.ALLOC_CALL_SHARE)
    if often is not None and share is not None and often.number >= IN_THE_LOOP and share.number >= LARGE_PART:
        return Finding(
            headline=f"Device memory is allocated and freed all the time: {share} of the time in CUDA calls.",
            confidence=0.8,
            because=(
                Reason.of(f"memory is taken and given back once in {1 / often.number:.0f} launches", often),
                Reason.of(f"{share} of the time in CUDA calls is in them, and a free waits for the device", share),
            ),
            fixes=_fixes(),
            avoid="Do not add empty_cache(): it causes exactly this.",
            next=(MEMORY_SUMMARY, MEMORY_SNAPSHOT),
        )
    return None


def _fixes() -> tuple[Fix, ...]:
    return (
        Fix("remove empty_cache() and per-step frees", worth="the calls go"),
        Fix("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", cost="a restart"),
        Fix("bucket shapes, and run the largest once at the start", cost="padding"),
    )


# Allocation retries in the loop, while only suspected.
CLUES = (
    above(change.RETRIES_AT_DROP, 0, "decisive, needed", "the allocator flushes its cache and retries while training", "the allocator never had to retry"),
    above(run.ALLOC_RETRIES, 0, "decisive, needed", "allocation retries are logged", "the allocator never had to retry"),
)  # fmt: skip
