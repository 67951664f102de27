"""The first iterations are slow because they compile, tune and warm caches.

## What it means
Kernels are loaded on first use, libraries choose algorithms, compilers run, allocators grow, file caches fill. The
first steps or requests pay, later ones do not.

## Why it costs
A fixed price per start: minutes on large models. It matters when jobs restart often or servers scale out under load;
in a long run it does not.

## What else looks so
Preparing new shapes in later steps as well is `recompilation`. A first step that waits for data is input.

## Fix
Warm up before measuring or serving; keep compile caches between starts (`TORCHINDUCTOR_CACHE_DIR`, Triton's cache, a
pre-built engine); preload kernels; profile later steps.

## How the gain is found
What the first steps take above the median of the others.
"""

from __future__ import annotations

from stallwise.causes.serving._server_start import slow_server_start
from stallwise.doctor.findings.clue import above
from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.doctor.findings.rule import rule
from stallwise.doctor.findings.step_facts import NOTICEABLE, StepFacts, ms
from stallwise.evidence.capture import COMPILE_LOG
from stallwise.evidence.catalog import change
from stallwise.evidence.catalog import recording as r
from stallwise.evidence.catalog import run as logged
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category
from stallwise.evidence.profile import KIND

FIRST = 3  # steps that may be warm-up
MOSTLY = 0.4  # of the window: what a long run does in the rest of it is not seen well enough to be judged
HALF = 0.5  # of a profiled program's time: more and its start is what the profile shows
MANY = 50  # logged steps: a start is a small part of such a run
ORDINARY_S = 60.0  # every run compiles, loads and warms up for this long; longer is worth a remark by itself
TIMES_SLOWER = 2.0  # a first step this much slower than the median of the rest is no noise


@rule()
def cold_start(evidence: Evidence) -> Finding | None:
    """Looks for a slow beginning in the trace's steps, else in the logged ones, else in a server's start."""
    facts = StepFacts(evidence)
    series = facts.series(s.STEP_TIME) or facts.series(logged.STEP_TIME)
    if facts.knows(s.STEP_TIME) and (found := _mostly_once(facts)):
        return found
    if series is None or len(series.values) < FIRST + 1:
        return slow_server_start(evidence) or _profiled_start(facts)
    values = series.values
    usual = float(sorted(values[FIRST:])[len(values[FIRST:]) // 2])
    slow = values[:FIRST] > TIMES_SLOWER * usual
    if not slow[0] or (values[FIRST:] > TIMES_SLOWER * usual).any():
        return None
    preparing = facts.seconds(s.PLAN_WAIT) + facts.seconds(s.COMPILE_WAIT)
    traced = facts.knows(s.STEP_TIME)
    if traced and facts.share(preparing) < NOTICEABLE:
        return None  # slow for another reason, such as its input
    extra = float((values[:FIRST][slow] - usual).sum())
    return Finding(
        headline=f"Only the first steps are slow: {ms(extra)} of warm-up, then {ms(usual)} a step.",
        confidence=0.85 if traced else 0.7,
        category=Category.HOST_WAIT if traced else None,
        gain=facts.gain(0.0, preparing, "warm-up spread over the traced steps; nothing in a long run")
        if traced
        else None,
        because=(
            facts.because(
                f"{int(slow.sum())} first steps take more than twice the median of the others",
                s.STEP_TIME,
                logged.STEP_TIME,
            ),
        ),
        fixes=(
            Fix("leave the first steps out of every measurement", worth="honest numbers"),
            Fix("keep compile and kernel caches between starts", worth=f"{ms(extra)} a start"),
            Fix("warm up every shape before taking load", cost="start-up time"),
        ),
        avoid="Do not tune what later steps no longer do.",
        next=(COMPILE_LOG,),
        optional=len(values) > MANY or (not traced and extra < ORDINARY_S),
    )


def _profiled_start(facts: StepFacts) -> Finding | None:
    """Half of a profiled program's time is what every start pays: what it does afterwards is hardly in the profile."""
    share, spent = facts.number(logged.START_SHARE), facts.number(logged.START_TIME)
    what, counted = "imports and the model's way to the device", logged.START_SHARE
    whole = max((t.meta["host_s"] for t in facts.evidence.table(KIND)), default=0.0)
    if facts.knows(r.FIRST_CALLS) and whole > 0 and not share >= HALF:
        first = facts.evidence.all(r.FIRST_CALLS)[0]
        spent, share = first.number, first.number / whole
        what, counted = (
            f"first calls, which later calls of the same operator do not pay; most of it {first.note}",
            r.FIRST_CALLS,
        )
    if not share >= HALF:
        return None
    return Finding(
        headline=f"This is a start: {ms(spent)} of the profiled {ms(spent / share)} are {what}.",
        confidence=0.75,
        gain=None,
        because=(facts.because(f"{share:.0%} of the time is spent once", counted),),
        fixes=(
            Fix("time several batches after a warm-up and leave the start out", worth="numbers that recur"),
            Fix("load fewer modules, and weights straight to the device", worth=f"part of {ms(spent)} a start"),
        ),
        avoid="Do not tune operators by this profile: most of it happens once.",
    )


def _mostly_once(facts: StepFacts) -> Finding | None:
    """Of the recorded window a good part is spent on what a run does once."""
    first, captured = facts.seconds(s.FIRST_LAUNCH_WAIT), facts.seconds(s.CAPTURE_WAIT)
    once = first + captured + facts.seconds(s.PLAN_WAIT)
    if facts.share(once) < MOSTLY or facts.share(first + captured) < NOTICEABLE:
        return None
    seen = captured > first
    return Finding(
        headline=f"A graph is captured here: kernels are recorded, not run, for {ms(captured)} of {ms(facts.step_s)}."
        if seen
        else f"This is a start: {ms(once)} of every {ms(facts.step_s)} recorded load code and set libraries up, once.",
        # A capture says nothing of how the run performs; a start at least says that it is one.
        confidence=0.45 if seen else 0.85,
        category=Category.WARM_UP,
        gain=None if seen else facts.gain(0.0, once, "time spent once; nothing in a long run"),
        because=(
            facts.because(
                "what is launched between begin and end of a capture runs later"
                if seen
                else f"single launches stand for {ms(first)}, hundreds of times the usual launch",
                s.CAPTURE_WAIT if seen else s.FIRST_LAUNCH_WAIT,
            ),
        ),
        fixes=(
            Fix("record steps after the start: schedule(wait=10, warmup=3, active=5)", worth="steps that recur"),
            Fix("CUDA_MODULE_LOADING=LAZY, and caches kept between starts", worth=f"up to {ms(once)} a start"),
        ),
        avoid="Do not tune launches or operators by this recording: it shows what happens once.",
        explains=("launch-bound", "host-work-unattributed", "host-sync", "allocator-churn", "elementwise-unfused"),
    )


# Slow first iterations, while only suspected.
CLUES = (
    above(change.FIRST_STEPS_RATIO, 3.0, "fair, needed", "only the first steps are slow", "the first steps are like the rest"),
    above(change.STALL_IN_DATA, 0.5, "against", "later steps are as slow, for want of data"),
)  # fmt: skip
