"""What a log of NCCL alone can show: which ranks met, and how they reach each other. Not how fast.

Refuted by: more ranks in another log or in what is stated (the largest number counts), a warning, a channel to somebody.
"""

from __future__ import annotations

from stallwise.evidence.capture import NCCL_TESTS
from stallwise.evidence.catalog import distributed, stated
from stallwise.evidence.catalog import fabric as f
from stallwise.evidence.evidence import Evidence
from stallwise.findings.finding import Fix, Reason
from stallwise.findings.proof import Limit, Proof
from stallwise.rules.health._second_number import highest, of_now


def collective_setup(evidence: Evidence) -> Proof | None:
    """A single rank has nobody to wait for; several need a measured rate."""
    ranks, version = highest(of_now(evidence, f.FABRIC_RANKS)), evidence.get(f.NCCL_VERSION)
    if ranks is None or version is None or ranks.number < 1:
        return None
    if ranks.number == 1 and evidence.table("nccl.channels"):
        return None  # who has a channel has somebody at its other end
    warned = evidence.get(f.NCCL_WARNING)
    more = highest(fact for q in (stated.GPUS, distributed.RANKS_SEEN) for fact in of_now(evidence, q))
    lacks = ""
    if warned is not None:
        lacks = f"NCCL warns: {warned.value}"
    elif more is not None and more.number > ranks.number:
        lacks = f"NCCL says {ranks} rank{'' if ranks.number == 1 else 's'}, the job is told to have {more}."
    elif ranks.number > 1 and evidence.get(f.NCCL_TIME) is None:
        lacks = f"{ranks} ranks met without a warning; nothing here tells how fast they exchange."
    said = (
        "one rank alone: it has nothing to exchange and nobody to wait for"
        if ranks.number == 1
        else f"{ranks} ranks met"
    )
    return Proof(
        of="collectives",
        says=said,
        because=(Reason.of(f"{said}; no warning of NCCL", ranks, version),),
        confidence=0.8,
        limit=None
        if lacks or ranks.number > 1
        else Limit("nothing between cards", 1.0, f"{said}: communication cannot be what limits this run",
                   (Fix("a trace of a few steps shows what does", worth="certainty"),)),
        lacks=lacks,
        objects=warned is not None or (more is not None and more.number > ranks.number),
        next=(NCCL_TESTS,) if lacks else (),
        speaks_for_run=ranks.number <= 1,
    )  # fmt: skip
