"""The host is busy or paused outside any recorded operator while the device idles.

## What it means
The device has nothing to do, and on the host neither an operator nor a driver call is running: plain Python, a
library that the profiler does not see, a lock, another process, garbage collection, file or network input and output.

## Why it costs
Nothing overlaps it. The step grows by the whole pause.

## What else looks so
Garbage collection is one of its reasons and has its own name once seen (`python-gc-pauses`): a period in steps, or
the collector's frame. A loader without a mark of its own also looks so, at the start of the step.

## Fix
Find out what it is first: a sampling profiler on the main thread names it within seconds. Then move it off the main
thread, do it less often, or drop it.

## How the gain is found
The idle time during such silence; the low end is 0.8 of it, since what is moved elsewhere still costs some.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue, above
from stallwise.doctor.findings.finding import Finding, Fix, Gain, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.doctor.findings.step_facts import NOTICEABLE, StepFacts, ms
from stallwise.evidence.capture import GC_LOG, PY_SPY, TORCH_TRACE
from stallwise.evidence.catalog import gains, hardware, run, stages
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

UNRECORDED = 0.15  # of the step idle for no recorded reason
HELD, IDLE = 0.6, 0.5  # of the looks at the main thread; of the time that a kernel runs
STAYS = 0.2  # of the time remains after moving work off the main thread


def _one_line_and_idle(evidence: Evidence) -> bool:
    line = evidence.get(stages.SIDE_LINE)
    held = float(line.note) if line is not None and line.note else 0.0
    return held >= HELD and evidence.value(hardware.GPU_UTILISATION, 1.0) < IDLE and not evidence.all(s.STEP_COUNT)


@rule(s.SILENT_WAIT, s.STEP_TIME)
def host_work_unattributed(evidence: Evidence) -> Finding | None:
    """Looks for idle time without any operator, or with one that runs on the CPU."""
    facts = StepFacts(evidence)
    if facts.captured:
        return None
    silent, on_cpu = facts.seconds(s.SILENT_WAIT), facts.seconds(s.CPU_WORK_WAIT)
    lost = silent + on_cpu
    if facts.share(lost) < NOTICEABLE or (facts.only_at_first(s.SILENT_WAIT) and facts.share(on_cpu) < NOTICEABLE):
        return _not_recorded(facts)
    gain = facts.replayed(gains.NO_HOST_WORK, (1 - STAYS) * lost, lost, "idle time while the host was elsewhere")
    place = facts.word(s.SILENT_PLACE)
    with_it, steps = facts.steps_with(s.SILENT_WAIT)
    on_host = facts.on_host
    nothing = "no stage of the loop" if on_host else "no operator and no driver call"
    because = [facts.because(f"{nothing} runs for {ms(silent)}, in {with_it} of {steps} steps", s.SILENT_WAIT)]
    if place and not on_host:  # of a record the line itself is named, with its samples
        because.append(facts.because(f"it happens inside '{place}'", s.SILENT_PLACE))
    if facts.share(on_cpu) >= NOTICEABLE:
        because.append(
            facts.because(
                f"{facts.word(s.CPU_OPERATOR) or 'an operator'} computes {ms(on_cpu)} on the CPU", s.CPU_WORK_WAIT
            )
        )
    culprit = place if ".py:" in place else ""
    if on_cpu > silent and facts.word(s.CPU_OPERATOR):
        culprit = f"{facts.word(s.CPU_OPERATOR)} on the CPU"
    if culprit:
        return _named(facts, culprit, lost, gain, tuple(because), on_host)
    idles = "that is" if on_host else "the GPU idles"
    outside = "the loop's stages" if on_host else "any recorded operator"
    return Finding(
        headline=f"The host is busy outside {outside}: {idles} {ms(lost)} of every {ms(facts.step_s)}.",
        confidence=0.85 if facts.share(lost) > 0.1 else 0.6,
        category=Category.HOST_WAIT,
        gain=gain,
        because=tuple(because),
        against=(Reason("the trace does not say what the host does there"),),
        fixes=(
            Fix(
                f"look at '{place}' with a sampling profiler, then move it off the main thread or do it less often"
                if place
                else "sample the main thread, then move the work off it or do it less often",
                gain,
            ),
            Fix(
                "if it is garbage collection: gc.freeze() after set-up, gc.disable() in the loop, collect every N steps",
                gain,
                cost="one line",
                risk="memory of cycles until the next collection",
            ),
        ),
        avoid="Do not look for it on the device: there is nothing running.",
        next=(PY_SPY, GC_LOG),
        summary="Suspects, most common first: logging or metrics in Python, garbage collection, unmarked data loading, file or network access.",
    )


def _named(
    facts: StepFacts, culprit: str, lost: float, gain: Gain, because: tuple[Reason, ...], on_host: bool
) -> Finding:
    """The trace or the record holds the line or the operator."""
    idles = "" if on_host else ": the GPU idles"
    return Finding(
        headline=f"{culprit} holds the main thread{idles} {ms(lost)} of every {ms(facts.step_s)}.",
        confidence=0.9 if facts.share(lost) > 0.1 else 0.65,
        category=Category.HOST_WAIT,
        gain=gain,
        because=because,
        fixes=(
            Fix(f"move {culprit} off the main thread: loader workers, or ahead of time", gain, cost="CPU cores"),
            Fix("do it less often, or on the device", gain, cost="a few lines"),
        ),
        avoid="Do not look for it on the device: there is nothing running.",
        next=(PY_SPY,),
    )


def _not_recorded(facts: StepFacts) -> Finding | None:
    """The device idles and the trace does not hold the host's side at all."""
    lost = facts.seconds(s.UNKNOWN_WAIT)
    if facts.share(lost) < UNRECORDED:
        return None
    return Finding(
        headline=f"The GPU idles {ms(lost)} of every {ms(facts.step_s)}, and the trace does not hold what the host did.",
        confidence=0.55,
        category=Category.OTHER,
        gain=facts.gain(0.0, lost, "idle time without a recorded reason"),
        because=(
            facts.because(f"no work runs for {ms(lost)} and no launch of the next piece is recorded", s.UNKNOWN_WAIT),
        ),
        against=(Reason("launching, waiting and input look the same without the host's side"),),
        fixes=(Fix("record host and device together", worth="the reason"),),
        avoid="Do not guess: each of the possible reasons has another fix.",
        next=(TORCH_TRACE, PY_SPY),
    )


# Host time that nothing accounts for, while only suspected.


def _one_core(evidence: Evidence) -> bool | None:
    busy = evidence.value(run.HOST_BUSY_CORES)
    return 0.8 < busy < 1.3 if busy == busy else None


CLUES = (
    Clue(
        (stages.SIDE_LINE, hardware.GPU_UTILISATION),
        lambda e: _one_line_and_idle(e),
        "fair",
        "one Python line holds the main thread while the GPU is mostly idle",
    ),
    above(run.HOST_UNEXPLAINED_SHARE, 0.4, "decisive, needed", "most wall time is in no timed action and not on the device", "the timed actions cover the run"),
    above(run.DATA_SHARE, 0.3, "against", "the loader explains the wait"),
    above(run.HOST_HOT_SHARE, 0.3, "fair when seen", "one function takes much of the host's own time"),
    Clue((run.HOST_BUSY_CORES,), _one_core, "hint when seen", "one core is busy all the time"),
)  # fmt: skip
