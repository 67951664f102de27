"""Prefill and decode in each other's way, while only suspected: the collapse of a server past its knee."""

from __future__ import annotations

from dataclasses import replace

from stallwise.evidence.capture import SERVE_BENCH, SERVE_LOG, SERVE_METRICS
from stallwise.evidence.catalog import expected, serving, stated
from stallwise.evidence.evidence import Evidence
from stallwise.findings.clue import Clue, above, grew, over, yes
from stallwise.findings.finding import Finding, Fix, Reason
from stallwise.findings.symptom import Symptom
from stallwise.rules.serving._story import with_story

EXPLAINS = {Symptom.SERVING_COLLAPSE: "mostly", Symptom.HIGH_TTFT: "mostly", Symptom.SERVING_SLOW: "often"}


def _slower_than_memory(evidence: Evidence) -> bool | None:
    rate, bound = evidence.value(stated.USER_RATE), evidence.value(expected.DECODE_ITERATION)
    return 1.0 / rate > 1.5 * bound if rate > 0 and bound > 0 else None


def _decode_suffers(evidence: Evidence) -> bool | None:
    now, then = _now(evidence, stated.USER_RATE), evidence.get(stated.USER_RATE, run="before")
    return now.number < 0.7 * then.number if now and then else None


CLUES = (
    above(serving.CONCURRENCY, 1, "required", "several requests share the engine", "one request at a time: nobody is in its way"),
    Clue((stated.USER_RATE,), _decode_suffers, "hint", "running requests slow down as well", "running requests keep their pace: nobody is in their way"),
    grew(stated.TTFT, 4.0, "hint", "the first token waits many times longer under load", "the first token hardly waits longer"),
    yes(stated.CHUNKED_PREFILL, "against", "prefill is already cut into chunks", "whole prompts run between decodes"),
    over(stated.ITERATION_WITH_PREFILL, stated.ITERATION_DECODE_ONLY, 3.0, "strong, needed",
         "iterations that carry a prefill take several times a decode", "prefill does not lengthen an iteration"),
    above(stated.KV_USE, 0.92, "against", "the KV cache is full: preemption explains it as well", "the KV cache has room"),
    above(stated.PREEMPTIONS, 0, "against", "requests are preempted", "no request is preempted"),
    Clue((stated.USER_RATE, expected.DECODE_ITERATION), _slower_than_memory, "hint",
         "tokens come slower than reading weights and KV explains", "reading weights and KV explains the token rate"),
)  # fmt: skip


def advise(evidence: Evidence) -> Finding:
    """Chunked prefill, then a cap from the KV budget, then speculation; each with its number here."""
    get = evidence.get
    prefill, load, floor, bound = (get(q) for q in (
        expected.PREFILL_TIME, expected.PREFILL_LOAD, expected.DECODE_FLOOR, expected.DECODE_ITERATION))  # fmt: skip
    budget, tokens, per_token, fit = (get(q) for q in (
        expected.KV_BUDGET, expected.KV_BUDGET_TOKENS, expected.KV_BYTES_PER_TOKEN, expected.KV_SEQUENCES))  # fmt: skip
    inside, gain = get(expected.CONCURRENCY), evidence.value(expected.SPECULATIVE_GAIN, 2.8)
    ttft, rate = _now(evidence, stated.TTFT), _now(evidence, stated.USER_RATE)
    because = []
    if rate and bound and floor:
        because.append(Reason(
            f"{rate} is {1e3 / rate.number:.0f} ms an iteration; reading weights alone takes {floor}, with the KV of about "
            f"{inside} requests {bound}: the rest is prefill in between"))  # fmt: skip
    if ttft and prefill:
        because.append(Reason(f"one prompt needs {prefill} of prefill, the first token takes {ttft}: it queues"))
    if per_token and budget:
        because.append(Reason(f"KV: {per_token} a token, {budget} left beside the weights, {tokens} tokens"))
    first = (
        f"TTFT {ttft} -> {_ms(prefill.number * 4)} to {_ms(prefill.number * 20)}"
        if ttft and prefill
        else "TTFT back to queue plus prefill"
    )
    cap = (
        f"about {fit} requests of {fit.note.split()[0]} tokens fit; cap near {0.9 * fit.number:.0f}"
        if fit and fit.note
        else "a cap that never preempts"
    )
    decode = (
        f"{rate} -> up to {min(gain, 2.0) * rate.number:.0f} token/s at moderate batch (bound {gain:.1f} tokens a step)"
        if rate
        else f"up to {gain:.1f}x"
    )
    finding = Finding(
        headline="Prefill and decode fight for the GPU: past the knee both first and later tokens suffer.",
        confidence=0.0,
        because=tuple(because),
        summary="At low load decode reads memory and prefill fits in between; at this load whole prompts stop every decode.",
        fixes=(
            Fix("Cut prefill into chunks (chunked prefill); beyond that, separate prefill and decode workers", worth=first,
                cost=f"prefill itself needs {load} of the engine" if load else "some prefill efficiency",
                risk="chunks move delay into later tokens; disaggregation moves KV over the network"),
            Fix("Cap running requests by the KV budget, not by a round number", worth=cap,
                cost="some requests wait at the door", risk="too low a cap idles the GPU"),
            Fix("Speculative decoding: more tokens for each read of the weights", worth=decode,
                cost="a draft model and its memory", risk="gain fades at large batch, where decode is no longer memory-bound"),
            Fix("Set max_num_seqs and max_num_batched_tokens on purpose, from a sweep at the target latency",
                worth="the last 10 to 20%", cost="an hour of load tests", risk="tuned for one mix of lengths"),
        ),
        not_here=(Reason("GPU utilisation near 100% only says that some kernel ran: memory-bound decode shows the same"),),
        avoid="Adding GPUs first: decode is bound by memory and by the schedule; more cards move the knee, not the shape.",
        next=(SERVE_METRICS, SERVE_LOG, SERVE_BENCH),
    )  # fmt: skip
    if evidence.get(serving.GPUS_NOW):  # the story's own sums replace the rough arithmetic
        finding = replace(finding, because=())
    return with_story(finding, evidence)


def _now(evidence: Evidence, quantity):  # type: ignore[no-untyped-def]
    return next((f for f in evidence.all(quantity) if f.scope.run is None), None)


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
