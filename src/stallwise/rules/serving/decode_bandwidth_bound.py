"""Decoding reads all weights and the KV cache for every token: memory bandwidth is the limit.

## What it means
One decode iteration multiplies a few rows (one per running request) with every weight matrix. The bytes of the
weights and of the KV cache, not arithmetic, set its time.

## Why it costs
At small batch the same bytes serve few tokens. The device shows full utilisation while its matrix units idle.

## What else looks so
99% utilisation read as efficiency. An iteration with gaps between kernels is limited by the host (`launch-bound`,
`cpu-bound-engine`), not by memory.

## Fix
Serve more requests per iteration until latency or KV memory says stop; quantise weights and KV; speculative decoding;
split weights over more devices for latency.

## How the gain is found
Time per token falls with the batch until the ridge; in bits, by the ratio of weight bytes. Gains are given per
choice, since latency and throughput pull apart.
"""

from __future__ import annotations

from stallwise.evidence.capture import SERVE_METRICS
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Account
from stallwise.findings.finding import Finding, Fix, Reason
from stallwise.findings.rule import rule
from stallwise.findings.step_facts import StepFacts, ms, percent
from stallwise.rules.serving._served_at_the_roof import served_at_the_roof

BUSY = 0.75  # of the iteration: with more idle time the host is the limit
MOST = 0.4  # of the busy time in matrix kernels with few rows


@rule()
def decode_bandwidth_bound(evidence: Evidence) -> Finding | None:
    """Looks for busy decode iterations made of matrix kernels with few rows; without a trace, at the service's rates."""
    if not evidence.all(s.ITERATION_KIND):
        return served_at_the_roof(evidence)
    facts = StepFacts(evidence)
    busy, weights = facts.seconds(s.BUSY_TIME), facts.seconds(s.DECODE_WEIGHT_TIME)
    if facts.word(s.ITERATION_KIND) != "decode" or facts.share(busy) < BUSY or weights < MOST * busy:
        return None
    gain = facts.gain(0.2 * weights, 0.55 * weights, "weights in 8 bits instead of 16, at the same bandwidth")
    rows = facts.number(s.MATRIX_ROWS)
    because = [
        facts.because(
            f"{percent(weights / busy)} of the busy time multiplies few rows with whole weight matrices",
            s.DECODE_WEIGHT_TIME,
        )
    ]
    if rows:
        because.append(facts.because(f"{rows:.0f} rows a product: far below the ridge, so bytes decide", s.MATRIX_ROWS))
    return Finding(
        headline=f"Decoding is limited by memory bandwidth: {ms(weights)} of every {ms(facts.step_s)} reads weights.",
        confidence=0.8,
        account=Account.COMPUTE,
        gain=gain,
        because=tuple(because),
        fixes=(
            Fix(
                "more running requests per iteration",
                worth="tokens per second grow nearly in proportion",
                cost="KV memory",
                risk="latency",
            ),
            Fix("fp8 or int4 weights, fp8 KV cache", gain, risk="accuracy: evaluate"),
            Fix("speculative decoding", worth="1.5-2.5x tokens per iteration at small batch", cost="a draft model"),
        ),
        not_here=(Reason("full GPU utilisation: it says that kernels run, not that they compute"),),
        avoid="Do not buy more FLOP/s: bandwidth is what decodes.",
        next=(SERVE_METRICS,),
    )
