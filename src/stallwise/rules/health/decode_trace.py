"""A decode loop is well when each token moves its bytes near the memory's rate, with no gap between kernels."""

from __future__ import annotations

from stallwise.evidence.capture import TORCH_TRACE
from stallwise.evidence.catalog import roof
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.findings.finding import Fix
from stallwise.findings.proof import Limit, Proof
from stallwise.findings.step_facts import StepFacts, percent
from stallwise.rules.health._device_time import busy_share

BUSY = 0.95  # of the iteration; gaps of launch cost between kernels stay below the rest
NEAR_MEMORY = 0.60  # of the memory's peak over the matrix time: good decode kernels reach 0.65 to 0.85


def decode_trace(evidence: Evidence) -> Proof | None:
    """Bytes a token against the memory's rate."""
    kind = evidence.text(s.ITERATION_KIND)
    busy = busy_share(evidence)
    if busy is None or not kind:
        return None
    facts = StepFacts(evidence)
    rate = evidence.value(roof.MEMORY_RATE_SHARE)
    known = rate == rate
    lacks = ""
    if busy < BUSY:
        lacks = f"the device is idle {percent(1 - busy)} of the time."
    elif not known:
        lacks = "the device is busy, but without shapes nothing tells how many bytes a token moves."
    elif kind != "decode":
        lacks = f"the iterations are {kind}: no floor is known for the mix."
    elif rate < NEAR_MEMORY:
        lacks = f"weights are read at {percent(rate)} of the memory's rate."
    text = f"decode reads its weights at {percent(rate)} of the memory's peak" if known else "decode"
    return Proof(
        of="decode loop",
        says=f"the device works {percent(busy)} of an iteration; {text}",
        because=(facts.because(text, roof.MEMORY_RATE_SHARE, s.BUSY_TIME),),
        confidence=0.9,
        limit=Limit("memory bandwidth", rate, f"{text}: to go faster, move fewer bytes", BYTES_LEVERS) if not lacks else None,
        lacks=lacks,
        objects=busy < BUSY or rate < NEAR_MEMORY,
        next=() if known else (TORCH_TRACE,),
    )  # fmt: skip


BYTES_LEVERS = (
    Fix("narrower weights (FP8, INT4): fewer bytes a token", worth="in proportion to the bytes", risk="accuracy"),
    Fix("more requests a batch: the same bytes serve more tokens", worth="throughput, not latency", cost="KV memory"),
    Fix("speculative decoding: several tokens a pass", worth="1.5 to 2.5x at low batch", cost="a draft model"),
    Fix("tensor parallelism: each card reads a part", worth="latency", cost="cards and a collective a layer"),
)
