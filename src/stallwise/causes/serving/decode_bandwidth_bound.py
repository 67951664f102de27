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
Time per token falls with the batch until the ridge; in bits, by the ratio of the bytes that are read: weights, or the
KV cache where attention takes longer and reads at the memory's rate. Gains are given per choice, since latency and
throughput pull apart.
"""

from __future__ import annotations

from stallwise.causes.serving._served_at_the_ceiling import served_at_the_ceiling
from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.doctor.findings.step_facts import StepFacts, ms, percent
from stallwise.evidence.capture import NVIDIA_SMI, SERVE_BENCH, SERVE_METRICS
from stallwise.evidence.catalog import expected, roofline, serving
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

BUSY = 0.75  # of the iteration: with more idle time the host is the limit
MOST = 0.4  # of the busy time in matrix kernels with few rows, or in attention
FULL_RATE = 0.6  # of the memory's peak: good decode kernels reach 0.65 to 0.95, so that bytes and nothing else decide
UTILISED = Reason("full GPU utilisation: it says that kernels run, not that they compute")


@rule(serving.BYTES_SHARE, instead=(s.ITERATION_KIND,))
def decode_bandwidth_bound(evidence: Evidence) -> Finding | None:
    """Looks for busy decode iterations made of products with few rows, or of attention that reads at the memory's rate."""
    if not evidence.all(s.ITERATION_KIND):
        return served_at_the_ceiling(evidence)
    facts = StepFacts(evidence)
    busy = facts.seconds(s.BUSY_TIME)
    if facts.word(s.ITERATION_KIND) != "decode" or facts.share(busy) < BUSY:
        return None
    weights, kv = facts.seconds(s.DECODE_WEIGHT_TIME), facts.seconds(s.DECODE_KV_TIME)
    # Products that run far below a peak bind nothing while attention takes longer and reads at the full rate.
    if kv > max(weights, MOST * busy) and facts.number(roofline.ATTENTION_BYTES_SHARE) >= FULL_RATE:
        return _reads_the_cache(facts, kv, busy)
    return _reads_weights(facts, weights, busy) if weights >= MOST * busy else None


def _reads_the_cache(facts: StepFacts, kv: float, busy: float) -> Finding:
    rate = facts.number(roofline.ATTENTION_BYTES_SHARE)
    gain = facts.gain(0.3 * kv, 0.5 * kv, "a KV cache in 8 bits instead of 16, at the same bandwidth")
    return Finding(
        headline=f"Decoding is limited by memory bandwidth: {ms(kv)} of every {ms(facts.step_s)} reads the KV cache.",
        confidence=0.85,
        category=Category.COMPUTE,
        gain=gain,
        because=(
            facts.because(f"attention takes {percent(kv / busy)} of the busy time", s.DECODE_KV_TIME),
            facts.because(f"it reads at {percent(rate)} of the memory's peak", roofline.ATTENTION_BYTES_SHARE),
        ),
        fixes=(
            Fix("fp8 KV cache: half the bytes", gain, risk="accuracy over long contexts: evaluate"),
            Fix("fewer KV heads (GQA, MLA) or a window", worth="in proportion to the bytes of a token", cost="another model"),
            Fix("share the cache of common prefixes (cascade attention)", worth="prefix bytes are read once a batch"),
            Fix("tensor parallelism over KV heads", worth="each card reads its heads", cost="cards and a collective a layer"),
        ),
        not_here=(
            UTILISED,
            Reason("matrix products far below their peak: they wait for no arithmetic, and attention takes longer"),
        ),
        avoid="Narrower weights or more FLOP/s: the bytes are those of the KV cache.",
        next=(SERVE_METRICS,),
    )  # fmt: skip


def _reads_weights(facts: StepFacts, weights: float, busy: float) -> Finding:
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
        category=Category.COMPUTE,
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
        not_here=(UTILISED,),
        avoid="Do not buy more FLOP/s: bandwidth is what decodes.",
        next=(SERVE_METRICS,),
    )


# Decode at the memory roof, while only suspected: does reading weights and KV explain the token rate?
NEAR = 2.0  # engines reach half of the roof and more at moderate batch


def _token_s(evidence: Evidence) -> float:
    rate = next((f.number for f in evidence.all(serving.PER_REQUEST_RATE) if f.scope.run is None), float("nan"))
    return 1.0 / rate if rate > 0 else evidence.value(serving.TPOT)


def _explained(evidence: Evidence) -> bool | None:
    bound = evidence.value(expected.DECODE_ITERATION, evidence.value(expected.DECODE_FLOOR))
    token_s = _token_s(evidence)
    return token_s < NEAR * bound if token_s == token_s and bound == bound else None


CLUES = (
    Clue(
        (expected.DECODE_FLOOR,),
        _explained,
        "fair",
        "reading weights and KV explains the token rate",
        "tokens come slower than memory explains",
    ),
)


def advise(evidence: Evidence) -> Finding:
    """Fewer bytes a token: smaller weights, more tokens a read, more cards to read with."""
    floor, weights = evidence.get(expected.DECODE_FLOOR), evidence.get(expected.WEIGHT_BYTES)
    token_s = _token_s(evidence)
    because = (
        [Reason(f"weights of {weights} are read in {floor}: at most {1 / floor.number:.0f} tokens a second and user")]
        if floor and weights
        else []
    )
    if token_s == token_s:
        because.append(Reason(f"a token takes {token_s * 1e3:.0f} ms"))
    return Finding(
        headline="Decode reads all weights for every token: memory bandwidth sets the rate.",
        confidence=0.0,
        because=tuple(because),
        fixes=(
            Fix("Weights in 8 or 4 bits", worth=f"{floor} -> {floor.number * 500:.1f} ms for the read at half the bytes" if floor else "half the bytes, twice the rate",
                cost="a quantised checkpoint", risk="accuracy: evaluate"),
            Fix("Speculative decoding", worth="1.5 to 2.5x tokens a read", cost="a draft model", risk="fades at large batch"),
            Fix("Tensor parallelism over more cards of one node", worth="bandwidth adds up", cost="cards, and an all-reduce a layer", risk="latency of the all-reduce at small batch"),
        ),
        not_here=(Reason("GPU utilisation near 100%: it says that kernels run, not that they compute"),),
        avoid="Faster matrix kernels: the products wait for bytes.",
        next=(SERVE_METRICS, SERVE_BENCH, NVIDIA_SMI),
    )  # fmt: skip
