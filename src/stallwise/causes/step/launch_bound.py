"""The host cannot launch work as fast as the device finishes it.

## What it means
Each operator costs the host several microseconds of Python, dispatch and driver. When kernels are shorter than that,
the device idles between them and the step takes as long as the host needs to walk through the model.

## Why it costs
Kernel speed no longer matters: the device waits at every launch. The idle share is the part of the step that a faster
way of launching wins.

## What else looks so
The profiler slows launches by 1.3 to 2 times, so a run that the device limits can look launch-bound when traced. What
recording costs is taken off first; a clean step time beside the trace decides. Waits for input or synchronisation also
leave gaps, but the host is not launching in them.

## Fix
Launch less often: compile the model, replay CUDA graphs, fuse the optimizer, use larger batches. Then cut Python
between operators.

## How the gain is found
The trace is replayed without its profiler and without the host's time for launching: what is left is the device's own
work. The low end keeps a good part of the gap for what graphs cannot cover. A profile of sums has no order of events: it shows
the cause, and no gain.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import above, below, over
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.doctor.findings.step_facts import NOTICEABLE, WORTH_FIXING, StepFacts, ms, percent
from stallwise.doctor.findings.words import long_seconds
from stallwise.evidence.capture import CLEAN_STEP as CLEAN_CAPTURE
from stallwise.evidence.capture import NSYS
from stallwise.evidence.catalog import gains, run
from stallwise.evidence.catalog import recording as r
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

# Of the step. With less, and no clean step to say so, the doubt in the profiler's cost is as large as the gap.
BOUND_SHARE = 0.15
SLOW_DISPATCH = 0.15  # of the step: dispatch costs a microsecond a kernel, a few percent in healthy steps
PROFILED = 0.5  # of the host's time on the device: below, the device waits even if the profiler doubled the host's time
MOSTLY = 0.7  # of the host's time in operators and launches
DISPATCH_S = 1e-4  # of the host a launch: an eager operator takes 5 to 20 us, under a profiler and with Python around it up to 50
SUMMED = 0.8  # sums do not show the order of things
COVERED = 0.67  # of the gap goes when launches are batched: graphs leave their own launch and what cannot be captured


@rule(s.LAUNCH_WAIT, s.STEP_TIME, instead=(r.ISSUED,))
def launch_bound(evidence: Evidence) -> Finding | None:
    """Looks for idle time while the host is launching, the profiler's cost taken off; without steps at the sums of a profile."""
    facts = StepFacts(evidence)
    if not facts.knows(s.LAUNCH_WAIT):
        return _by_sums(facts)
    if facts.captured:
        return None
    gap = facts.seconds(s.LAUNCH_WAIT)
    known_clean = facts.knows(s.CLEAN_STEP)
    if facts.share(gap) < NOTICEABLE:
        return _between_queued(facts)
    low_s, _ = facts.range_of(s.REPLAYED_STEP)
    doubt = max(facts.seconds(s.REPLAYED_STEP) - low_s, 0.0) if not known_clean else 0.0
    least = max(gap - doubt, 0.0)
    gain = facts.replayed(gains.GRAPHS, COVERED * least, gap, "idle time while the host launches")
    # Idle time that survives the dearest profiler is sure; idle time that goes with it is a matter of odds.
    sure = facts.share(least) >= NOTICEABLE
    kernel, count = facts.seconds(s.KERNEL_MEDIAN), facts.number(s.LAUNCHES)
    interval = facts.seconds(s.LAUNCH_INTERVAL)
    compiled = facts.number(s.COMPILED_SHARE) > 0.5
    return Finding(
        headline=f"The host cannot launch fast enough: the GPU idles {ms(gap)} of every {ms(facts.step_s)} between kernels.",
        confidence=0.92 if sure else 0.55,
        category=Category.LAUNCH_GAP,
        gain=gain,
        because=(
            facts.because(
                f"{count:.0f} launches a {facts.unit}, one every {ms(interval)}; the median kernel takes {ms(kernel)}",
                s.LAUNCHES,
                s.KERNEL_MEDIAN,
            ),
            facts.because(
                f"the queue holds {facts.number(s.QUEUE_DEPTH):.1f} pieces of work on average", s.QUEUE_DEPTH
            ),
        ),
        against=() if sure else (Reason("the profiler's own cost may explain it: a clean step time decides", ()),),
        fixes=(
            Fix(
                'torch.compile(model, mode="reduce-overhead") (CUDA graphs)',
                gain,
                cost="compile time",
                risk="recompiles if shapes change",
            )
            if not compiled
            else Fix(
                'mode="reduce-overhead": replay the compiled regions as CUDA graphs',
                gain,
                risk="fixed shapes and addresses",
            ),
            Fix(
                "a larger (micro-)batch: the same launches carry more work",
                cost="memory",
                worth="the idle share shrinks in proportion",
            ),
            Fix("a fused optimizer (fused=True)", cost="one argument")
            if facts.number(s.OPTIMIZER_KERNELS) > 100
            else Fix("fewer, larger operators; less Python between them", cost="model changes"),
        ),
        not_here=_not_here(facts),
        avoid="Do not tune kernels: the device is waiting for the host.",
        next=() if known_clean else (CLEAN_CAPTURE,),
        summary=f"The device works {percent(facts.share(facts.seconds(s.BUSY_TIME)))} of the time; the rest it waits for the next launch.",
        optional=facts.share(gap) < (WORTH_FIXING if known_clean else BOUND_SHARE),
    )


def _by_sums(facts: StepFacts) -> Finding | None:
    """Operators keep the host busy for more than twice as long as their kernels the device, and it does little else."""
    host, device, issued = (facts.number(q) for q in (r.HOST_SUM, r.DEVICE_SUM, r.ISSUED))
    issuing = host - facts.number(r.NOT_ISSUING)
    if not issued > 0 or device > PROFILED * host or issuing < MOSTLY * host or issuing > DISPATCH_S * issued:
        return None
    return Finding(
        headline=f"The host cannot launch fast enough: it works {long_seconds(host)} for {long_seconds(device)} of the GPU.",
        confidence=SUMMED,
        because=(
            facts.because(
                f"{issued:,.0f} launches: {ms(issuing / issued)} of the host for each, {ms(device / issued)} of the device",
                r.ISSUED,
            ),
            facts.because(
                f"the device works at most {percent(device / host)} of the host's time, and "
                f"{percent(issuing / host)} of that time goes into operators and launches, not into waiting, copies or loading",
                r.HOST_SUM,
                r.DEVICE_SUM,
            ),
        ),
        fixes=(
            Fix(
                'torch.compile(model, mode="reduce-overhead") (CUDA graphs)',
                cost="compile time",
                risk="recompiles if shapes change",
            ),
            Fix("a larger batch: the same launches carry more work", cost="memory"),
        ),
        avoid="Do not tune kernels: the device is waiting for the host.",
        next=(CLEAN_CAPTURE,),
        summary=f"The profiler makes the host up to twice as slow; even then the GPU would idle {percent(1 - device / host / PROFILED)} of the time."
        if device < 0.9 * PROFILED * host
        else "",
    )


def _not_here(facts: StepFacts) -> tuple[Reason, ...]:
    count, cost = facts.number(s.SYNC_COUNT), facts.seconds(s.SYNC_WAIT)
    if count >= 1 and facts.share(cost) < NOTICEABLE:
        return (
            facts.because(
                f"{count:.0f} synchronising calls a {facts.unit}: the queue is empty anyway, they cost {ms(cost)}",
                s.SYNC_COUNT,
            ),
        )
    return ()


def _between_queued(facts: StepFacts) -> Finding | None:
    """The host is ahead, yet the device idles between pieces of work that were queued already."""
    lost = facts.seconds(s.DISPATCH_WAIT)
    if facts.share(lost) < SLOW_DISPATCH:
        return None
    graphs = facts.number(s.GRAPH_SHARE)
    against = (
        "kernels of replayed graphs may be missing from the trace: then the device was busy" if graphs > 0.1 else ""
    )
    return Finding(
        headline=f"The GPU idles {ms(lost)} of every {ms(facts.step_s)} between kernels that were queued already.",
        confidence=0.6,
        category=Category.OTHER,
        gain=facts.gain(0.0, lost, "idle time between queued kernels; nothing if the trace merely misses some"),
        because=(
            facts.because(
                f"{facts.number(s.LAUNCHES):.0f} pieces of work, {ms(facts.seconds(s.KERNEL_MEDIAN))} the median",
                s.LAUNCHES,
            ),
            facts.because(
                f"the queue holds {facts.number(s.QUEUE_DEPTH):.0f} on average, so the host is not late", s.QUEUE_DEPTH
            ),
        ),
        against=(Reason(against),) if against else (),
        fixes=(
            Fix("fewer, longer kernels: fuse (torch.compile), larger batches", cost="compile time"),
            Fix(
                "record again with a newer driver and CUPTI, or with Nsight Systems",
                worth="certainty",
                cost="a short run",
            ),
        ),
        avoid="Do not speed up the host: it is ahead already.",
        next=(NSYS,),
    )


# Too many launches, while only suspected.
CLUES = (
    over(run.LAUNCH_COST, run.REPLAY_COST, 2.0, "decisive, needed",
         "launching a kernel costs several times what replaying it in a graph does", "a graph would replay no faster"),
    above(run.DATA_SHARE, 0.3, "against", "time goes to loading"),
    below(run.LOADER_WORKERS, 1, "against", "the loader has no worker"),
)  # fmt: skip
