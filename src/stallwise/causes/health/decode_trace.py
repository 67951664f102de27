"""A decode loop is well when each token moves its bytes near the memory's rate, with no gap between kernels.

Refuted by: the other half of the bytes (products at 8% of the memory's peak behind attention at 94%, or the reverse), iterations
that differ, a rank that idles. What binds is what is read longest, weights or the KV cache, and is named so.
"""

from __future__ import annotations

from stallwise.causes.health._ceiling import bytes_limit, read_at
from stallwise.causes.health._device_time import busy_share
from stallwise.doctor.findings.proof import Proof
from stallwise.doctor.findings.step_facts import StepFacts, percent
from stallwise.evidence.capture import TORCH_TRACE
from stallwise.evidence.catalog import roofline
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence

BUSY = 0.95  # of the iteration; gaps of launch cost between kernels stay below the rest
NEAR_MEMORY = 0.60  # of the memory's peak over the matrix time: good decode kernels reach 0.65 to 0.85
MOST_NEAR = 0.80  # of the busy time in kernels near a ceiling: the rest is too little to refute it
ALIKE = 0.10  # longest over shortest iteration: contexts grow a little from token to token


def decode_trace(evidence: Evidence) -> Proof | None:
    """Bytes a token against the memory's rate."""
    kind = evidence.text(s.ITERATION_KIND)
    busy = busy_share(evidence)
    if busy is None or not kind:
        return None
    facts = StepFacts(evidence)
    what, rate = read_at(evidence)
    known = rate == rate
    near = min((f.number for f in evidence.all(roofline.NEAR_SHARE)), default=0.0)
    spread = max((f.number for f in evidence.all(roofline.STEP_SPREAD)), default=0.0)
    lacks, objects = _lacks(kind, busy, what, rate, near, spread)
    text = f"decode reads {what} at {percent(rate)} of the memory's peak" if known else "decode"
    return Proof(
        of="decode loop",
        says=f"the device works {percent(busy)} of an iteration; {text}",
        because=(facts.because(text, roofline.ATTENTION_BYTES_SHARE, roofline.MEMORY_RATE_SHARE, s.BUSY_TIME),),
        confidence=0.9,
        limit=None if lacks else bytes_limit(what, rate),
        lacks=lacks,
        objects=objects,
        next=() if known else (TORCH_TRACE,),
    )


def _lacks(kind: str, busy: float, what: str, rate: float, near: float, spread: float) -> tuple[str, bool]:
    """What is missing, and whether it was looked at and is not well."""
    if busy < BUSY:
        return f"the device is idle {percent(1 - busy)} of the time.", True
    if rate != rate:
        return "the device is busy, but without shapes nothing tells how many bytes a token moves.", False
    if kind != "decode":
        return f"the iterations are {kind}: no floor is known for the mix.", False
    if rate < NEAR_MEMORY:
        return f"{what} is read at {percent(rate)} of the memory's rate.", True
    if near < MOST_NEAR:
        return (
            f"{what} is read at {percent(rate)} of the memory's rate, but {percent(1 - near)} of the busy time is near no ceiling.",
            True,
        )
    if spread > ALIKE:
        return f"the traced iterations differ by {percent(spread)}.", True
    return "", False
