"""One huge request holds the engine while small ones wait behind it.

## What it means
First come, first served: a prompt of a hundred thousand tokens takes seconds of prefill, or a share of the cache that lets
nobody else in, and everyone behind it waits although they would need milliseconds.

## Why it costs
The wait of all small requests is the service time of the large one. Throughput in tokens looks fine; latency does not.

## What else looks so
A cap of one shows one running request as well, but that one generates at full speed. A full cache is preemption or too small
a cache.

## Fix
Chunked prefill with a limit on long prompts at once, a separate queue or replica for long requests, shortest-first or
priority scheduling.

## How the gain is found
The share of samples in which the engine was held times the queue length: waits that a second lane would remove.
"""

from __future__ import annotations

from stallwise.causes.serving._each_run import facts, surest
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import SERVE_LOG, SERVE_METRICS
from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Evidence

CLUES = ()
OFTEN = 0.3  # of the samples: longer than a passing prompt


@rule(serving.LONE_PREFILL_SHARE)
def head_of_line_blocking(evidence: Evidence) -> Finding | None:
    """One or two running, next to nothing generated, a queue, room in the cache."""
    return surest(evidence, _judge)


def _judge(evidence: Evidence) -> Finding | None:
    value = evidence.value
    held, samples = value(serving.LONE_PREFILL_SHARE, 0.0), value(serving.SAMPLES, 0.0)
    prefill = value(serving.PREFILL_RATE, 0.0)
    if held < OFTEN or held * samples < 3 or prefill <= 0:
        return None
    waiting = value(serving.WAITING, 0.0)
    return Finding(
        headline=f"A large request holds the engine in {held:.0%} of the samples while others wait.",
        confidence=0.8,
        because=(
            Reason.of(f"at most two run, nothing is generated, up to {waiting:.0f} wait", *facts(evidence, serving.LONE_PREFILL_SHARE, serving.WAITING)),
            Reason.of(f"prompts flow at {prefill:,.0f} tokens a second all the while", *facts(evidence, serving.PREFILL_RATE)),
            *(Reason.of(f"KV use is {kv}: memory is not why", kv) for kv in facts(evidence, serving.KV_QUEUED)),
        ),
        fixes=(
            Fix("Chunked prefill with a bound on long prompts (max_num_partial_prefills, long_prefill_token_threshold)",
                worth="small requests pass between chunks", cost="a restart", risk="TTFT of the long one rises"),
            Fix("A lane of its own for long prompts: a second replica or a priority class", worth="waits of the small ones go", cost="some GPUs"),
            Fix("Cache the long prefix (documents asked about again and again)", worth="the second question costs a fraction"),
        ),
        not_here=(Reason("token throughput: it looks fine, because prefill is efficient"),),
        avoid="Raising max_num_seqs: the order of service is the problem, not the number.",
        next=(SERVE_LOG, SERVE_METRICS),
        explains=("queue-saturated",),
    )  # fmt: skip
