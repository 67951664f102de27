"""Prefill holds the GPU while running requests wait for their next token.

## What it means
A prompt of thousands of tokens is one long, compute-bound iteration. Unless it is cut into chunks or done elsewhere, every
running request stands still until it is over.

## Why it costs
Time per token gets spikes as long as a prefill; under load prefills follow each other and decode starves, while the queue
in front of prefill makes the first token late as well.

## What else looks so
Preemption also stops tokens, but with a full cache. A CPU-bound engine slows all iterations alike. A compile of a new
shape stops them once.

## Fix
Chunked prefill with a token budget near the knee; a cap by KV budget; separate prefill and decode workers when both targets
are tight; prefix caching where prompts repeat.

## How the gain is found
Generation in samples with prefill against samples without, times the share of such samples: the tokens that were not made.
"""

from __future__ import annotations

import math

from stallwise.causes.serving._each_run import facts, fitting, surest
from stallwise.causes.serving._story import with_story
from stallwise.doctor.findings.clue import Clue, above, grew, over, yes
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import SERVE_BENCH, SERVE_LOG, SERVE_METRICS
from stallwise.evidence.catalog import expected, run, serving
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit, show

OFTEN = 3  # samples; one may be the start of the run
NOTICEABLE = 0.05  # of the time
TAIL_SHARE = 0.03  # of tokens: several stalls in every answer of some length
TAIL_RATIO = 5.0  # 99th percentile over the median
LONG_ITERATION = 3.0  # times an iteration of decodes alone: a chunk of sensible size stays below
CARRIED = 0.2  # of the time in iterations with prompts
FULL = 0.92  # of the KV cache
LONGER, SLOWER = 4.0, 2.0  # times, first and later tokens of a sweep: a larger batch alone costs less
BEFORE = "before"
BUSY = 0.85  # of the time
CROWDED = 0.4  # of the engine's time that prefill needs
STRETCHED = 1.8  # token time over what decode alone takes: more than the model of decode errs


@rule()
def prefill_decode_contention(evidence: Evidence) -> Finding | None:
    """Decodes that stop when prompts flow, or a tail of token times with room in the cache; a sweep in which both suffer."""
    judged = surest(evidence, _judge) if evidence.all(serving.SAMPLES) else None
    return judged or _swept(evidence)


def _swept(evidence: Evidence) -> Finding | None:
    """Two loads, of benchmarks, phases or a statement: under the higher one first and later tokens both suffer, by more than the load grew."""
    value = evidence.value
    waits, slows, load = (value(q) for q in (serving.TTFT_GROWTH, serving.TPOT_GROWTH, serving.LOAD_GROWTH))
    if not (waits >= LONGER and slows >= SLOWER):
        return None
    if value(serving.KV_MAX, 0.0) >= FULL or value(serving.PREEMPTED, 0.0) > 0:
        return None  # a full cache makes both suffer by itself
    chunked, kv = value(serving.CHUNKED_PREFILL), evidence.get(serving.KV_MAX)
    found = Finding(
        headline=f"First and later tokens both suffer: {load:.1f}x the load made them {waits:.0f}x and {slows:.1f}x slower.",
        confidence=0.45 if chunked > 0 else 0.7,
        because=(
            Reason.of(f"the first token{_grew(evidence, serving.TTFT)} came {waits:.0f}x later", *facts(evidence, serving.TTFT_GROWTH)),
            Reason.of(f"later tokens{_grew(evidence, serving.TPOT)} took {slows:.1f}x as long: prompts run between them", *facts(evidence, serving.TPOT_GROWTH)),
            *((Reason.of(f"memory is not why: KV use peaks at {kv}", kv),) if kv else ()),
        ),
        against=() if kv else (Reason("nothing shows how full the KV cache was"),),
        category=Category.DECODE,
        fixes=_fixes(evidence, 1 - 1 / slows),
        not_here=_busy(evidence),
        avoid="Adding GPUs first: each new replica would stall its own decodes the same way.",
        next=(SERVE_METRICS, SERVE_LOG),
        explains=("queue-saturated",),
    )  # fmt: skip
    return with_story(found, evidence)


def _grew(evidence: Evidence, quantity: Quantity) -> str:
    """From the quiet load to the high one, where both are known; a rate a user is told as the time of a token."""
    found = []
    for then in (True, False):
        fact = next((f for f in evidence.all(quantity) if (f.scope.run == BEFORE) is then), None)
        rate = next((f for f in evidence.all(serving.PER_REQUEST_RATE) if (f.scope.run == BEFORE) is then), None)
        if fact is not None:
            found.append(show(fact.number, Unit.SECOND))
        elif quantity is serving.TPOT and rate is not None and rate.number > 0:
            found.append(show(1.0 / rate.number, Unit.SECOND))
    return f" ({found[0]} -> {found[1]})" if len(found) == 2 else ""


def _busy(evidence: Evidence) -> tuple[Reason, ...]:
    """A utilisation near 100% is no sign of work done."""
    busy = evidence.get(run.GPU_BUSY)
    if busy is None or busy.number < BUSY:
        return ()
    return (
        Reason.of(
            f"GPU utilisation of {busy}: some kernel always runs, and decode that waits for memory shows the same", busy
        ),
    )


def _judge(evidence: Evidence) -> Finding | None:
    value = evidence.value
    stalls, ratio, share = (
        value(q) for q in (serving.PREFILL_STALLS, serving.PREFILL_STALL_RATIO, serving.PREFILL_STALL_SHARE)
    )
    slow, slow_s = value(serving.SLOW_TOKEN_SHARE, 0.0), value(serving.SLOW_TOKEN_TIME)
    full = value(serving.KV_FULL_SHARE, 0.0) > 0.1 or value(serving.PREEMPTED, 0.0) > 0
    tail, middle = value(serving.TPOT_TAIL), value(serving.TPOT)
    starved = stalls >= OFTEN and share >= NOTICEABLE and ratio == ratio
    slow_share_known = evidence.get(serving.SLOW_TOKEN_SHARE) is not None
    spiky = slow >= TAIL_SHARE or (not slow_share_known and tail > TAIL_RATIO * middle)
    load, seen, expected = (value(q) for q in (serving.PREFILL_LOAD, serving.DECODE_SEEN, serving.DECODE_EXPECTED))
    crowded = load >= CROWDED and seen > STRETCHED * expected and not full
    long, short = value(serving.ITERATION_PREFILL), value(serving.ITERATION_DECODE)
    carried = value(serving.ITERATION_PREFILL_SHARE, 0.0)
    stretched = long > LONG_ITERATION * short and carried >= CARRIED and value(serving.RUNNING, 0.0) >= 2
    if starved:
        confidence = 0.93 if slow >= TAIL_SHARE else 0.88
    elif crowded or stretched:
        confidence = 0.85
    elif spiky and not full and value(serving.RUNNING, 0.0) >= 2 and value(serving.PREFILL_RATE, 0.0) > 0:
        confidence = 0.6
    else:
        return None
    if value(serving.CHUNKED_PREFILL, 0.0) and not (starved or crowded or stretched):
        confidence -= 0.25
    lost = (
        share * (1 - ratio)
        if starved
        else 1 - expected / seen
        if crowded
        else carried * (1 - short / long)
        if stretched
        else slow
    )
    because = []
    if starved:
        because.append(Reason.of(
            f"in {stalls:.0f} samples prompts flow and generation falls to {ratio:.0%} of its usual rate, running unchanged",
            *facts(evidence, serving.PREFILL_STALLS, serving.PREFILL_STALL_RATIO)))  # fmt: skip
    if slow >= TAIL_SHARE:
        each = f"{slow_s * 1e3:.0f} ms on average, " if slow_s == slow_s else ""
        because.append(
            Reason.of(
                f"{slow:.1%} of the tokens take {each}over five medians",
                *facts(evidence, serving.SLOW_TOKEN_SHARE),
            )
        )
    if crowded:
        because.append(Reason.of(
            f"prompts need {load:.0%} of the engine's time; a token takes {seen * 1e3:.0f} ms where decode alone takes {expected * 1e3:.0f} ms",
            *facts(evidence, serving.PREFILL_LOAD, serving.DECODE_SEEN, serving.DECODE_EXPECTED)))  # fmt: skip
    if stretched:
        because.append(Reason.of(
            f"iterations that carry prompts take {long * 1e3:.0f} ms, those without {short * 1e3:.0f} ms; they are {carried:.0%} of the time",
            *facts(evidence, serving.ITERATION_PREFILL, serving.ITERATION_DECODE)))  # fmt: skip
    if kv := evidence.get(serving.KV_MAX):
        because.append(Reason.of(f"memory is not why: KV use peaks at {kv}", kv))
    return Finding(
        headline=f"Prefill stops running decodes: {lost:.0%} of the tokens' time is lost to it.",
        confidence=confidence,
        because=tuple(because),
        category=Category.DECODE,
        fixes=_fixes(evidence, lost),
        not_here=(Reason("a healthy mean time per token: the stalls hide in its tail"),),
        avoid="Adding GPUs first: each new replica would stall its own decodes the same way.",
        next=(SERVE_METRICS, SERVE_LOG),
        explains=("queue-saturated", "batch-cap-too-low"),
    )


def _fixes(evidence: Evidence, lost: float) -> tuple[Fix, ...]:
    rate = evidence.value(serving.PREFILL_RATE)
    seen = evidence.value(serving.DECODE_EXPECTED)
    budget = "512 to 2048 tokens"
    if rate > 0 and seen > 0:
        budget = f"about {max(256, round(rate * seen / 256) * 256):,.0f} tokens (one more decode iteration long)"
    on = evidence.value(serving.CHUNKED_PREFILL, 0.0) > 0
    first = "Lower max_num_batched_tokens" if on else "Turn on chunked prefill (max_num_batched_tokens"
    first += f" to {budget}" if on else f" {budget})"
    fit = fitting(evidence)
    cap = f"the cache holds about {fit:,.0f} requests of this length" if fit == fit else "no preemption on top"
    gain = f"up to {1 / (1 - min(lost, 0.9)):.1f}x generation while prompts flow; " if lost == lost else ""
    return (
        Fix(first, worth=f"{gain}the longest stall becomes one chunk",
            cost="a restart; a little prefill efficiency", risk="TTFT of long prompts rises"),
        Fix("Cap running requests by the KV budget, so that prompts are admitted at the pace they finish", worth=cap,
            cost="some requests wait at the door", risk="too low a cap idles the GPU"),
        Fix("Separate prefill and decode workers", worth="decode never sees a prefill",
            cost="KV moves over the network", risk="worth it above a few GPUs"),
        Fix("Speculative decoding while decode is bound by memory", worth="1.5 to 2.5x tokens per iteration at small batch",
            cost="a draft model", risk="gain fades as the batch grows"),
        Fix("Cache shared prefixes", worth="prefill shrinks by the hit rate", cost="KV room", risk="none where prompts differ"),
        Fix("FP8 weights and KV, where they are not yet", worth="up to 2x prefill arithmetic, half the bytes",
            cost="a quantised checkpoint", risk="check accuracy"),
        Fix("Higher TP, then more replicas, last", worth="fewer prompts each; the same stalls", cost="GPUs", risk="the knee moves, the shape stays"),
    )  # fmt: skip


# Prefill and decode in each other's way, while only suspected: the collapse of a server past its knee.


def _slower_than_memory(evidence: Evidence) -> bool | None:
    rate, bound = evidence.value(serving.PER_REQUEST_RATE), evidence.value(expected.DECODE_ITERATION)
    return 1.0 / rate > 1.5 * bound if rate > 0 and bound > 0 else None


def _decode_suffers(evidence: Evidence) -> bool | None:
    now, then = _now(evidence, serving.PER_REQUEST_RATE), evidence.get(serving.PER_REQUEST_RATE, run="before")
    return now.number < 0.7 * then.number if now and then else None


CLUES = (
    above(serving.CONCURRENCY, 1, "required", "several requests share the engine", "one request at a time: nobody is in its way"),
    Clue((serving.PER_REQUEST_RATE,), _decode_suffers, "hint", "running requests slow down as well", "running requests keep their pace: nobody is in their way"),
    grew(serving.TTFT, 4.0, "hint", "the first token waits many times longer under load", "the first token hardly waits longer"),
    yes(serving.CHUNKED_PREFILL, "against", "prefill is already cut into chunks", "whole prompts run between decodes"),
    over(serving.ITERATION_PREFILL, serving.ITERATION_DECODE, 3.0, "strong, needed",
         "iterations that carry a prefill take several times a decode", "prefill does not lengthen an iteration"),
    above(serving.KV_MAX, 0.92, "against", "the KV cache is full: preemption explains it as well", "the KV cache has room"),
    above(serving.PREEMPTED, 0, "against", "requests are preempted", "no request is preempted"),
    Clue((serving.PER_REQUEST_RATE, expected.DECODE_ITERATION), _slower_than_memory, "hint",
         "tokens come slower than reading weights and KV explains", "reading weights and KV explains the token rate"),
)  # fmt: skip


def advise(evidence: Evidence) -> Finding:
    """The same fixes where it is only suspected: simulated as far as the service is described."""
    found = Finding(
        headline="Prefill and decode fight for the GPU: past the knee both first and later tokens suffer.",
        confidence=0.0,
        because=(),
        summary="At low load decode reads memory and prefill fits in between; at this load whole prompts stop every decode.",
        fixes=_fixes(evidence, math.nan),
        not_here=(Reason("GPU utilisation near 100% only says that some kernel ran: memory-bound decode shows the same"),),
        avoid="Adding GPUs first: decode is bound by memory and by the schedule; more cards move the knee, not the shape.",
        next=(SERVE_METRICS, SERVE_LOG, SERVE_BENCH),
    )  # fmt: skip
    return with_story(found, evidence)


def _now(evidence: Evidence, quantity):  # type: ignore[no-untyped-def]
    return next((f for f in evidence.all(quantity) if f.scope.run is None), None)
