"""The KV cache is full: running requests are thrown out and computed again.

## What it means
Every token of every running request keeps its keys and values in GPU memory. When the pool is full and a request needs
one more block, the scheduler evicts another: its blocks are freed and, when its turn comes again, its whole prefix is
prefilled anew (or paused, swapped, or loaded back from another tier).

## Why it costs
Recomputing a prefix repeats work that was already paid for, and while it runs nobody decodes. Near 100% the engine can
spend most of its time on evicting and recomputing: throughput falls just when load is highest.

## What else looks so
A full cache alone is no fault: 99% use with a steady running count is a well-used cache. A queue with the cache nearly
empty is a cap or a slow prefill. One preemption in an hour is noise: what matters is how many, and whether running
falls while waiting rises.

## Fix
Cap running requests so that their final length fits. Store KV in FP8. Give the cache more of the card, or more cards
per replica. Prefer a policy that admits only what can finish. More replicas last.

## How the gain is found
From the rate before the cache filled against the rate after, and from requests lost to the queue; the cap is the number
of requests whose full length fits the tokens that the cache holds.
"""

from __future__ import annotations

from stallwise.causes.serving._each_run import facts, fitting, surest
from stallwise.doctor.findings.clue import above
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import SERVE_LOG, SERVE_METRICS
from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Evidence

CLUES = (
    above(
        serving.CONCURRENCY,
        1,
        "required",
        "several requests are in flight",
        "one request at a time: nobody to make room for",
    ),
    above(serving.PREEMPTED, 0, "strong", "requests are preempted", "no request is preempted"),
    above(serving.KV_MAX, 0.95, "fair", "the KV cache is full", "the KV cache has room"),
)
MANY = 5  # preemptions below this are noise of a full cache, not a condition
LOST = 3  # running requests; fewer come and go by themselves
THRASHING_RATIO = 0.6  # of the rate before the cache filled
OFTEN_FULL = 0.1  # share of samples
NEARLY = 0.9  # of the requests that fit: room for the last block of each


@rule(serving.SAMPLES)
def kv_cache_preemption(evidence: Evidence) -> Finding | None:
    """Counted preemptions, or their shadow in the samples."""
    return surest(evidence, _judge)


def _judge(evidence: Evidence) -> Finding | None:
    value = evidence.value
    counted = value(serving.PREEMPTED, 0.0) + value(serving.RESCHEDULED, 0.0)
    lost, ratio = value(serving.RUNNING_LOST, 0.0), value(serving.FULL_RATE_RATIO, 1.0)
    paused, full = value(serving.PAUSED, 0.0), value(serving.KV_FULL_SHARE, 0.0)
    thrashing = ratio < THRASHING_RATIO and full >= OFTEN_FULL
    emptied = lost >= LOST and full >= OFTEN_FULL
    if counted >= MANY or (counted and (emptied or thrashing)):
        confidence = 0.93
    elif paused > 0 and full >= OFTEN_FULL:
        confidence = 0.9
    elif emptied or thrashing:
        confidence = 0.85
    elif counted:
        confidence = 0.55
    else:
        return None
    done = value(serving.REQUESTS_DONE)
    return Finding(
        headline=_headline(counted, lost, ratio),
        confidence=confidence,
        because=_because(evidence, counted, lost, ratio, paused),
        summary="Each of them gives back its blocks and is prefilled again from its first token.",
        against=(Reason(f"only {counted:.0f} of {done:.0f} requests"),) if counted and done > 200 * counted else (),
        fixes=_fixes(evidence),
        not_here=(
            Reason("GPU utilisation near 100%: recomputing prefixes keeps the GPU busy with work it had done before"),
        ),
        avoid="Raising max_num_seqs: more requests in a full cache means more evictions, not more throughput.",
        next=(SERVE_METRICS, SERVE_LOG),
        explains=("queue-saturated", "kv-cache-too-small", "prefill-decode-contention"),
    )


def _headline(counted: float, lost: float, ratio: float) -> str:
    if counted:
        return f"The KV cache is full: {counted:.0f} requests were evicted and computed again."
    if lost >= LOST:
        return f"The KV cache is full: {lost:.0f} running requests were pushed back into the queue."
    if ratio < THRASHING_RATIO:
        return f"With the KV cache full, each request generates at {ratio:.0%} of its former rate: evict and recompute."
    return "The KV cache is full and requests are paused for lack of blocks."


def _because(evidence: Evidence, counted: float, lost: float, ratio: float, paused: float) -> tuple[Reason, ...]:
    found = []
    if counted:
        what = facts(evidence, serving.PREEMPTED, serving.RESCHEDULED)
        found.append(Reason.of(f"{counted:.0f} preempted, retracted or rescheduled requests", *what))
    if (kv := evidence.get(serving.KV_MAX)) and (share := evidence.get(serving.KV_FULL_SHARE)):
        found.append(Reason.of(f"KV use reaches {kv} and is full in {share} of the samples", kv, share))
    if lost >= LOST:
        found.append(
            Reason.of(
                f"running falls by {lost:.0f} while waiting rises by as many", *facts(evidence, serving.RUNNING_LOST)
            )
        )
    if ratio < THRASHING_RATIO:
        found.append(
            Reason.of(
                f"tokens per running request fall to {ratio:.0%} once it is full",
                *facts(evidence, serving.FULL_RATE_RATIO),
            )
        )
    if paused > 0:
        found.append(Reason.of(f"{paused:.1f} requests are paused on average", *facts(evidence, serving.PAUSED)))
    if policy := evidence.get(serving.EVICTION):
        found.append(Reason.of(f"scheduler policy {policy}", policy))
    return tuple(found)


def _fixes(evidence: Evidence) -> tuple[Fix, ...]:
    fit, running = fitting(evidence), evidence.value(serving.RUNNING_MAX)
    tokens = evidence.get(serving.KV_TOKENS)
    cap = f"cap near {NEARLY * fit:.0f}" if fit == fit else "cap at KV tokens over full request length"
    room = f" ({tokens} tokens of KV)" if tokens else ""
    now = f" {running:.0f}" if running == running else ""
    back = evidence.value(serving.FULL_RATE_RATIO)
    won = f"rate per request back up {1 / back:.1f}x" if 0 < back < 1 else "no more recomputation"
    policy = "GUARANTEED_NO_EVICT" if "MAX_UTIL" in evidence.text(serving.EVICTION) else ""
    first = (
        (
            Fix(
                f"Switch the capacity policy to {policy}: admit only what can finish",
                worth=won,
                risk="requests wait longer at the door",
            ),
        )
        if policy
        else ()
    )
    return (
        *first,
        Fix(f"Cap running requests by the KV budget{room}: max_num_seqs{now} -> {cap}", worth=won,
            cost="the rest wait at the door, once, instead of again and again", risk="too low a cap idles the GPU"),
        Fix("KV cache in FP8 (kv_cache_dtype fp8)", worth="twice the tokens in the same memory",
            risk="check accuracy on long contexts"),
        Fix("More memory for KV: gpu_memory_utilization up, shorter max_model_len, FP8 weights, higher TP",
            worth="each GB is a GB of blocks", cost="a restart"),
        Fix("Shed or spread load: admission control now, more replicas last", worth="in proportion", cost="GPUs"),
    )  # fmt: skip
