"""Code or library plans are rebuilt inside the training loop because shapes or guards keep changing.

## What it means
torch.compile specialises code on shapes, types and Python values; libraries (cuDNN, cuBLASLt) build plans for each
new shape. When these change from step to step, the host compiles or plans again instead of launching, until a limit
is hit and the model falls back to eager.

## Why it costs
A recompilation takes seconds, a library plan tens of milliseconds, each of them idle time of the device. After the
limit the speed of compiled code is gone as well.

## What else looks so
The first iterations always compile: that is `cold-start` and ends. Graph breaks split the model once and stay.

## Fix
Pad or bucket lengths to a few sizes; mark the changing dimension dynamic (`torch._dynamo.mark_dynamic`,
`dynamic=True`); keep Python values that change out of the compiled region. `TORCH_LOGS=recompiles` names the guard.

## How the gain is found
The idle time inside compilation, or inside the first call of an operator on a new shape, in steps after the first.
The low end is 0.7 of it: some shapes have to be seen once.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue, above, says_one_of
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.doctor.findings.step_facts import NOTICEABLE, StepFacts, ms
from stallwise.evidence.capture import COMPILE_LOG
from stallwise.evidence.catalog import change, run, stated
from stallwise.evidence.catalog import run as logged
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

SEEN_ONCE = 0.3  # of the cost stays: each shape is prepared at least once
SOME_RECOMPILES = 3  # one or two are the normal way to a dynamic shape


@rule()
def recompilation(evidence: Evidence) -> Finding | None:
    """Looks for compiling or planning in steps after the first, or for recompiles in a log."""
    facts = StepFacts(evidence)
    lost = facts.seconds(s.COMPILE_WAIT) + facts.seconds(s.PLAN_WAIT)
    if facts.share(lost) >= NOTICEABLE and (_later(facts, s.COMPILE_WAIT) or _later(facts, s.PLAN_WAIT)):
        return _in_trace(facts, lost)
    return _in_log(facts)


def _later(facts: StepFacts, quantity: object) -> bool:
    """True when a step after the first spends a noticeable time so."""
    series = facts.series(quantity)  # type: ignore[arg-type]
    if series is None or len(series.values) < 2:
        return False
    return bool((series.values[1:] > NOTICEABLE * facts.step_s).any())


def _in_trace(facts: StepFacts, lost: float) -> Finding:
    plan, compile_s = facts.seconds(s.PLAN_WAIT), facts.seconds(s.COMPILE_WAIT)
    operator = facts.word(s.PLAN_OPERATOR)
    quantity = s.COMPILE_WAIT if compile_s >= plan else s.PLAN_WAIT
    again, steps = facts.steps_with(quantity)
    gain = facts.gain(
        (1 - SEEN_ONCE) * lost, lost, "idle time while code or plans are prepared; each shape is still prepared once"
    )
    what = "compiles" if compile_s >= plan else f"prepares {operator or 'an operator'} for a new shape"
    compiled = facts.number(s.COMPILED_SHARE) > 0 or compile_s > plan
    idles = "that is" if facts.on_host else "the GPU idles"
    return Finding(
        headline=f"The host {what} inside the loop: {idles} {ms(lost)} of every {ms(facts.step_s)}.",
        confidence=0.85 if again >= 2 else 0.6,
        category=Category.HOST_WAIT,
        gain=gain,
        because=(
            facts.because(f"it happens in {again} of {steps} steps, so it is no warm-up", quantity),
            facts.because(
                f"{operator} holds the host for milliseconds before it launches; usually it takes microseconds",
                s.PLAN_WAIT,
                s.PLAN_OPERATOR,
            )
            if plan > compile_s
            else facts.because(f"{ms(compile_s)} a {facts.unit} are inside the compiler", s.COMPILE_WAIT),
        ),
        fixes=(
            Fix("bucket or pad the changing length to a few sizes", gain, cost="padding"),
            Fix(
                "mark the dimension dynamic (torch.compile(dynamic=True), mark_dynamic)",
                gain,
                cost="slightly slower kernels",
            )
            if compiled
            else Fix("keep shapes fixed; switch cudnn.benchmark off if shapes must vary", gain),
            Fix("warm up every bucket before the loop", gain, cost="start-up time"),
        ),
        avoid="Do not raise the recompile limit first: it buys more compilations.",
        next=(COMPILE_LOG,),
        summary="Shapes or guards change from step to step, and each new one is prepared from scratch.",
    )


def _in_log(facts: StepFacts) -> Finding | None:
    count, limit = facts.number(logged.RECOMPILES), facts.number(logged.RECOMPILE_LIMIT_HIT)
    if count < SOME_RECOMPILES and limit == 0:
        return None
    reason = facts.word(logged.RECOMPILE_REASON)
    because = [facts.because(f"{count:.0f} recompilations in the log", logged.RECOMPILES)] if count else []
    if reason:
        because.append(facts.because(f"the guard that fails: {reason}", logged.RECOMPILE_REASON))
    if limit:
        because.append(facts.because("the limit was hit: that code runs eagerly since", logged.RECOMPILE_LIMIT_HIT))
    return Finding(
        headline="torch.compile recompiles in the loop" + (" and has fallen back to eager." if limit else "."),
        confidence=0.92 if limit or count > 2 * SOME_RECOMPILES else 0.8,
        because=tuple(because),
        fixes=(
            Fix("bucket or pad the changing size, or mark it dynamic", worth="compile time back, compiled speed kept"),
            Fix("keep changing Python values out of the compiled function", cost="a refactor"),
        ),
        avoid="Do not raise the recompile limit first: it buys more compilations.",
        next=(COMPILE_LOG,),
    )


# torch.compile at work again and again, while only suspected.
MANY_BREAKS = 10  # breaks cut the model into pieces that each recompile: then the breaks are the cause


def _pieces(evidence: Evidence) -> bool | None:
    return evidence.value(run.GRAPH_BREAKS, 0.0) >= MANY_BREAKS


CLUES = (
    above(run.RECOMPILE_LIMIT_HIT, 0, "decisive", "a function hit the recompile limit and runs eagerly since", "no function hit the limit"),
    above(run.RECOMPILES, 3, "strong", "functions are recompiled inside the loop", "hardly anything is recompiled"),
    Clue((run.GRAPH_BREAKS,), _pieces, "against", "graph breaks cut the model into pieces first", "few breaks"),
    says_one_of(stated.CHANGED, ("torch.compile", "compile", "dynamic shape", "variable length"), "strong when seen", "compilation or shapes changed", "neither compilation nor shapes changed"),
    above(change.FIRST_STEPS_RATIO, 3.0, "against", "only the first steps are slow"),
)  # fmt: skip


def advise(evidence: Evidence) -> Finding:
    """Say which guard failed and how to stop it."""
    hit, count, reason = (evidence.get(q) for q in (run.RECOMPILE_LIMIT_HIT, run.RECOMPILES, run.RECOMPILE_REASON))
    eager, compiled = evidence.get(run.EAGER_TIME), evidence.get(run.COMPILED_TIME)
    because = [Reason.of(f"{count} recompilations logged", count)] if count else []
    if hit:
        because.append(Reason.of(f"{hit} times the limit was hit: the function falls back to eager for good", hit))
    if reason:
        because.append(Reason.of(f"the guard that fails: {reason}", reason))
    sizes = reason is not None and "size" in str(reason.value)
    speed = f"{compiled} -> under the eager {eager}" if eager and compiled else "the compiled speed instead of eager"
    return Finding(
        headline="torch.compile keeps recompiling" + (" and then gives up." if hit else "."),
        confidence=0.0,
        because=tuple(because),
        fixes=(
            Fix("Mark the varying dimension dynamic (mark_dynamic, dynamic=True)" if sizes else "Remove what the guard checks from the compiled region", worth=speed,
                cost="one line", risk="dynamic kernels are a little slower"),
            Fix("Bucket or pad inputs to a few sizes", worth="one compilation a bucket", cost="some padding", risk="wasted work on padding"),
            Fix("Raise torch._dynamo.config.recompile_limit when the number of variants is bounded", worth="no fallback to eager", cost="compile time a variant",
                risk="hides an unbounded variety"),
        ),
        avoid="Turning compile off for good: the model compiles; one guard fails.",
        next=(COMPILE_LOG,),
    )  # fmt: skip
