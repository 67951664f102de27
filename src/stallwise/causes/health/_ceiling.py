"""Which ceiling binds a busy device: arithmetic or bytes, and whose bytes. Shared by the proofs about traces."""

from __future__ import annotations

from stallwise.doctor.findings.finding import Fix
from stallwise.doctor.findings.proof import Limit
from stallwise.doctor.findings.step_facts import percent
from stallwise.evidence.catalog import roofline
from stallwise.evidence.evidence import Evidence

MATRIX_LED = 0.5  # of the busy time: from here matrix work and attention decide the pace
WEIGHT_LEVERS = (
    Fix("narrower weights (FP8, INT4): fewer bytes a token", worth="in proportion to the bytes", risk="accuracy"),
    Fix("more requests a batch: the same bytes serve more tokens", worth="throughput, not latency", cost="KV memory"),
    Fix("speculative decoding: several tokens a pass", worth="1.5 to 2.5x at low batch", cost="a draft model"),
    Fix("tensor parallelism: each card reads a part", worth="latency", cost="cards and a collective a layer"),
)
CACHE_LEVERS = (
    Fix("a narrower KV cache (FP8): fewer bytes a token", worth="in proportion to the bytes", risk="accuracy"),
    Fix("fewer KV heads (GQA, MLA), a window, or shared prefixes", worth="in proportion to the bytes", cost="another model or engine setting"),
    Fix("tensor parallelism over KV heads: each card reads its own", worth="latency", cost="cards and a collective a layer"),
)  # fmt: skip


def attention_leads(evidence: Evidence) -> bool:
    """Attention takes more of the busy time than all other matrix work."""
    attention = evidence.value(roofline.ATTENTION_SHARE, 0.0)
    return attention > evidence.value(roofline.MATRIX_SHARE, 0.0) - attention


def read_at(evidence: Evidence) -> tuple[str, float]:
    """What a busy device mostly reads, and at which part of the memory's peak; NaN where no shapes tell."""
    if attention_leads(evidence):
        return "the KV cache", evidence.value(roofline.ATTENTION_BYTES_SHARE)
    rate = evidence.value(roofline.GEMM_BYTES_SHARE)
    return "its weights", rate if rate == rate else evidence.value(roofline.MEMORY_RATE_SHARE)


def bytes_limit(what: str, rate: float) -> Limit:
    """Memory bandwidth, with the levers that fit the bytes that are read."""
    levers = CACHE_LEVERS if what == "the KV cache" else WEIGHT_LEVERS
    return Limit(
        "memory bandwidth",
        rate,
        f"{what} at {percent(rate)} of the memory's peak: to go faster, move fewer bytes",
        levers,
    )


def ceiling(evidence: Evidence, near: float) -> Limit:
    """The nearer of the two roofline ceilings, never the matrix units at a few percent while bytes fill the memory."""
    matrix = evidence.value(roofline.MATRIX_SHARE, 0.0)
    rate, moved = evidence.value(roofline.MATRIX_RATE_SHARE), evidence.value(roofline.MEMORY_RATE_SHARE)
    if matrix < MATRIX_LED:
        return Limit(
            "memory bandwidth",
            near,
            f"{percent(1 - matrix)} of the busy time moves data: to go faster, move fewer bytes",
            (
                Fix("fuse what passes over the same data (torch.compile)", worth="one pass instead of several"),
                Fix("narrower activations and states", worth="in proportion to the bytes", risk="accuracy"),
            ),
        )
    if moved > rate:
        what, read = read_at(evidence)
        return bytes_limit(what, read if read == read else moved)
    at = f"at {percent(rate)} of the dense peak" if rate == rate else "in library kernels that fill the card"
    return Limit(
        "matrix units",
        rate if rate == rate else near,
        f"{percent(matrix)} of the busy time is matrix work, {at}: to go faster, compute less or in a narrower type",
        (
            Fix("a narrower type (FP8 where the model allows)", worth="up to twice the matrix rate", risk="accuracy"),
            Fix("compile what is not compiled: fewer passes over memory", worth=f"part of the other {percent(1 - matrix)}",
                cost="compile time"),
            Fix("more or faster cards", worth="in proportion, less what they exchange", cost="money"),
        ),
    )  # fmt: skip
