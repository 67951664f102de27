"""Decode at the memory roof, as a service shows it: time per token against bytes over bandwidth."""

from __future__ import annotations

from stallwise.causes.serving._each_run import facts
from stallwise.doctor.findings.finding import Finding, Fix, Gain, Reason
from stallwise.evidence.capture import SERVE_BENCH
from stallwise.evidence.catalog import serving, stated
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

MOSTLY_BYTES = 0.6  # of the iteration
LATE_S = 2.0  # a first token later than this is what is complained of
FP8_SAVES = (0.3, 0.5)  # of reading weights; KV stays unless quantised too


def served_at_the_ceiling(evidence: Evidence) -> Finding | None:
    """The measured iteration is what reading the bytes takes."""
    share, seen = evidence.value(serving.BYTES_SHARE), evidence.value(serving.DECODE_SEEN)
    expected = evidence.get(serving.DECODE_EXPECTED) or evidence.get(serving.DECODE_FLOOR)
    if not share >= MOSTLY_BYTES or not seen > 0 or expected is None:
        return None
    asked = any(evidence.all(q) for q in (stated.SYMPTOM, stated.ASKED))  # whoever asks for more speed meets this limit
    waits = evidence.value(serving.WAITING, 0.0) > 0 or evidence.value(serving.TTFT, 0.0) > LATE_S
    gain = Gain(FP8_SAVES[0] * share * seen, FP8_SAVES[1] * share * seen, "half the bytes of the weights")
    return Finding(
        headline=f"Decode runs at the memory roof: {share:.0%} of each {seen * 1e3:.1f} ms iteration reads weights and KV.",
        confidence=0.8,
        optional=not asked or waits,
        because=(
            Reason.of(f"{seen * 1e3:.1f} ms an iteration against {expected} expected from bytes over bandwidth",
                      *facts(evidence, serving.DECODE_SEEN), expected),
            *(Reason.of(f"arithmetic becomes the limit only beyond a batch of {f.number:.0f}", f) for f in facts(evidence, serving.COMPUTE_BATCH)),
        ),
        category=Category.DECODE,
        gain=gain,
        fixes=(
            Fix("FP8 or 4-bit weights, FP8 KV", gain=gain, risk="check accuracy"),
            Fix("Speculative decoding while the batch is small", worth="1.5 to 2.5x tokens per read", risk="gain fades with batch"),
            Fix("Larger batches: throughput almost for free until the batch above", worth="throughput, not latency"),
            Fix("Higher TP or a card with faster memory", worth="in proportion to bandwidth, less collectives", cost="GPUs"),
        ),
        not_here=(Reason("GPU utilisation of 99%: it counts time with a kernel running, not work done"),),
        avoid="A card with more FLOP/s and the same memory: decode would not notice.",
        next=(SERVE_BENCH,),
    )  # fmt: skip
