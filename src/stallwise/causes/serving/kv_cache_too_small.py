"""The weights leave KV room for only a few requests; the others wait.

## What it means
Memory that the weights do not take holds the KV cache. Divided by the bytes of one token and by the length of a request
it gives the number of requests that can run at once. Here that number is far below what is asked.

## Why it costs
Decode reads all weights for each iteration, however few requests share it. With a handful of requests in the batch the
card does a fraction of the work it could, and everybody else queues.

## What else looks so
A cap on running requests shows the same queue but leaves the cache empty. Preemption shows a full cache whose running
count falls. A single huge request can fill the cache of an otherwise healthy service.

## Fix
Quantise weights or KV to 8 bit, shorten the longest accepted request, spread the weights over more GPUs, or move to
cards with more memory. Then more replicas.

## How the gain is found
Requests that fit now against requests that fit after, both from tokens of KV over tokens of a request.
"""

from __future__ import annotations

from stallwise.causes.serving._each_run import facts, fitting, surest
from stallwise.doctor.findings.clue import above
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import SERVE_LOG
from stallwise.evidence.catalog import serving
from stallwise.evidence.catalog.memory import MEMORY_FRACTION
from stallwise.evidence.evidence import Evidence

CLUES = (above(serving.KV_MAX, 0.95, "fair", "the KV cache is full", "the KV cache has room"),)
FULL = 0.9  # KV use beside a queue
FEW = 3.0  # longest requests that fit at once: below this any mix of lengths queues
STEADY_LOST = 3  # running requests lost: beyond this it is preemption


@rule(serving.SAMPLES)
def kv_cache_too_small(evidence: Evidence) -> Finding | None:
    """A queue beside a full cache, with few running."""
    return surest(evidence, _judge)


def _judge(evidence: Evidence) -> Finding | None:
    value = evidence.value
    kv, waiting, running = value(serving.KV_QUEUED), value(serving.WAITING, 0.0), value(serving.RUNNING)
    if cramped := _cramped(evidence):
        return cramped
    if not (kv >= FULL and waiting > 0 and running > 0):
        return None
    fit = value(serving.MAX_CONCURRENCY)
    if waiting < running and not fit < FEW:
        return None
    few = fit < FEW or running <= 2 * FEW
    confidence = 0.85 if few and value(serving.RUNNING_LOST, 0.0) < STEADY_LOST else 0.6
    because = [
        Reason.of(
            f"{running:.0f} requests fill {kv:.0%} of the KV cache while {waiting:.0f} wait",
            *facts(evidence, serving.KV_QUEUED, serving.RUNNING, serving.WAITING),
        )
    ]
    if longest := evidence.get(serving.MAX_CONCURRENCY):
        because.append(
            Reason.of(f"the engine itself counts room for {longest} requests of the longest length", longest)
        )
    if aborted := evidence.get(serving.ABORTED):
        because.append(Reason.of(f"{aborted} requests were given up", aborted))
    return Finding(
        headline=f"The KV cache holds {running:.0f} requests and {waiting:.0f} wait: memory, not compute, is the limit.",
        confidence=confidence,
        because=tuple(because),
        fixes=_fixes(evidence),
        not_here=(Reason("GPU utilisation: a batch of a few requests keeps the GPU busy reading weights"),),
        avoid="Raising max_num_seqs: no more requests fit, whatever the cap.",
        next=(SERVE_LOG,),
        explains=("queue-saturated",),
    )


def _cramped(evidence: Evidence) -> Finding | None:
    """A pool that holds less than one request of the longest length, seen full while somebody waits: arithmetic."""
    pool, longest = evidence.get(serving.KV_TOKENS), evidence.get(serving.MAX_LENGTH)
    kv, queued = evidence.get(serving.KV_QUEUED), evidence.get(serving.WAITING_SHARE)
    if pool is None or longest is None or kv is None or queued is None:
        return None
    if not (pool.number < longest.number and kv.number >= FULL and queued.number > 0):
        return None
    fraction = evidence.get(MEMORY_FRACTION)
    because = [
        Reason.of(f"the KV pool holds {pool} tokens, one request may have {longest}", pool, longest),
        Reason.of(f"requests wait in {queued} of the samples, and the pool is {kv} full then", kv, queued),
    ]
    if fraction is not None:
        because.append(Reason.of(f"the engine may use {fraction.number:g} of the device for weights and KV", fraction))
    larger = Fix("Give the engine more of the device (--mem-fraction-static, --gpu-memory-utilization)",
                 worth="the pool grows by all that is left free", cost="a restart")  # fmt: skip
    return Finding(
        headline=f"The KV pool of {pool} tokens is smaller than one longest request ({longest}): others wait for it.",
        confidence=0.85,
        because=tuple(because),
        fixes=((larger,) if fraction is not None else ()) + _fixes(evidence),
        avoid="Raising max_num_seqs: no more requests fit, whatever the cap.",
        next=(SERVE_LOG,),
        explains=("queue-saturated", "kv-cache-preemption"),
    )


def _fixes(evidence: Evidence) -> tuple[Fix, ...]:
    fit, weights, kv = fitting(evidence), evidence.get(serving.WEIGHT_MEMORY), evidence.get(serving.KV_MEMORY)
    now = f"{fit:.0f} -> {2 * fit:.0f} requests" if fit == fit else "twice the requests"
    halved = "the weights' half becomes KV"
    if weights and kv and kv.number > 0:
        halved = f"KV {kv} -> {(kv.number + weights.number / 2) / 1e9:.0f} GB"
    longest, asked = evidence.value(serving.MAX_LENGTH), evidence.value(serving.PROMPT_TOKENS)
    length = f"max_model_len {longest:.0f} -> what requests need" if longest == longest else "a shorter max_model_len"
    if asked == asked:
        length += f" (prompts have {asked:.0f})"
    return (
        Fix("KV cache in FP8", worth=now, cost="a restart", risk="check accuracy on long contexts"),
        Fix("Weights in FP8 or 4 bit", worth=halved, risk="check accuracy"),
        Fix(length, worth="bounds what one request may hold"),
        Fix(
            "Higher TP: each card holds less of the weights", worth="KV grows by what each card gives back", cost="GPUs"
        ),
        Fix("More replicas", worth="in proportion", cost="GPUs; each repeats the weights"),
    )
