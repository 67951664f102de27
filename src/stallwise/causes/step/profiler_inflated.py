"""The profile is slower than the run: the profiler's own cost is in it.

## What it means
Recording every launch, shape and stack costs the host microseconds each. A step that the host limits grows 1.3 to 2
times while traced; one that the device limits hardly changes.

## Why it costs
Nothing in the real run. But a trace read naively blames launches that are fast enough without the profiler.

## What else looks so
A run that is launch-bound without a profiler as well: only the clean step time tells them apart.

## Fix
Trace without stacks and shapes, few steps, and give the clean step time (`--clean-step 58ms`): the launching idle
time is then corrected.

## How the gain is found
There is none to be had in the run itself; what the trace adds is said so that other gains are read against the clean
step.
"""

from __future__ import annotations

from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.doctor.findings.rule import rule
from stallwise.doctor.findings.step_facts import StepFacts, ms
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence

INFLATED = 1.15  # traced over clean: more than clocks and noise explain


@rule(s.CLEAN_STEP, s.TRACED_STEP)
def profiler_inflated(evidence: Evidence) -> Finding | None:
    """Compares the traced step with the clean one."""
    facts = StepFacts(evidence)
    traced, clean = facts.seconds(s.TRACED_STEP), facts.seconds(s.CLEAN_STEP)
    if clean <= 0 or traced < INFLATED * clean:
        return None
    return Finding(
        headline=f"The profiler slows this run {traced / clean:.1f}x: {ms(traced)} traced, {ms(clean)} clean.",
        confidence=0.95,
        because=(
            facts.because(f"the same step takes {ms(clean)} with no profiler attached", s.CLEAN_STEP, s.TRACED_STEP),
        ),
        fixes=(
            Fix("trace without with_stack and record_shapes, three to five steps", worth="a trace close to the run"),
        ),
        avoid="Do not act on idle time that only the trace has; it is taken off here.",
        optional=True,
    )
