"""Decode at the memory roof, while only suspected: does reading weights and KV explain the token rate?"""

from __future__ import annotations

from stallwise.evidence.capture import NVIDIA_SMI, SERVE_BENCH, SERVE_METRICS
from stallwise.evidence.catalog import expected, stated
from stallwise.evidence.evidence import Evidence
from stallwise.findings.clue import Clue
from stallwise.findings.finding import Finding, Fix, Reason
from stallwise.findings.symptom import Symptom

EXPLAINS = {
    Symptom.SERVING_COLLAPSE: "at times",
    Symptom.SERVING_SLOW: "mostly",
    Symptom.BUSY_BUT_SLOW: "at times",
    Symptom.LOW_GPU_UTILISATION: "seldom",
}
NEAR = 2.0  # engines reach half of the roof and more at moderate batch


def _token_s(evidence: Evidence) -> float:
    rate = next((f.number for f in evidence.all(stated.USER_RATE) if f.scope.run is None), float("nan"))
    return 1.0 / rate if rate > 0 else evidence.value(stated.TPOT)


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
    floor, weights, gain = (
        evidence.get(expected.DECODE_FLOOR),
        evidence.get(expected.WEIGHT_BYTES),
        evidence.value(expected.SPECULATIVE_GAIN, 2.8),
    )
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
            Fix("Speculative decoding", worth=f"up to {gain:.1f} tokens a read", cost="a draft model", risk="fades at large batch"),
            Fix("Tensor parallelism over more cards of one node", worth="bandwidth adds up", cost="cards, and an all-reduce a layer", risk="latency of the all-reduce at small batch"),
        ),
        not_here=(Reason("GPU utilisation near 100%: it says that kernels run, not that they compute"),),
        avoid="Faster matrix kernels: the products wait for bytes.",
        next=(SERVE_METRICS, SERVE_BENCH, NVIDIA_SMI),
    )  # fmt: skip
