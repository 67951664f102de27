"""Numbers that somebody states are well when they lie inside what the cost model gives for the same run.

Refuted by: another MFU of the same run (the worst and the latest count), a part of a whole in the same text that has no name
here, anything that is worse than in an earlier run, a machine that says it is idle.
"""

from __future__ import annotations

from stallwise.causes.health._second_number import got_worse, lowest, of_now, two_values, unnamed_shares
from stallwise.doctor.findings.finding import Fix, Reason
from stallwise.doctor.findings.proof import Limit, Proof
from stallwise.doctor.findings.step_facts import percent
from stallwise.evidence.capture import STEP_SHAPE, TORCH_TRACE
from stallwise.evidence.catalog import run, stated
from stallwise.evidence.catalog.hardware import GPU_NAME
from stallwise.evidence.evidence import Evidence

USUAL = (0.35, 0.60)  # MFU of published dense 16-bit training: the middle nine tenths
MOST = 0.75  # no published training run lies above; then the number itself is in doubt


def stated_numbers(evidence: Evidence) -> Proof | None:
    """A stated MFU against published runs."""
    mfus = of_now(evidence, run.MFU)
    mfu = lowest(mfus) or evidence.get(run.MFU)
    if mfu is None or not mfu.stated:
        return None
    beside = unnamed_shares(evidence, mfu.source.file)
    worse, busy = got_worse(evidence), lowest(of_now(evidence, run.GPU_BUSY))
    lacks = ""
    if two := two_values(mfus):
        lacks = f"MFU is told as {two}."
    elif beside:
        lacks = f"{percent(beside[-1])} stands beside an MFU of {mfu} and has no name here: it may be the MFU of now."
    elif worse is not None:
        lacks = f"an MFU of {mfu} is usual, but {worse.scope.layer} is {worse} worse than before."
    elif busy is not None and busy.number < mfu.number:
        lacks = f"an MFU of {mfu} cannot be with a GPU that is busy {busy} of the time."
    elif mfu.number < USUAL[0]:
        lacks = f"an MFU of {mfu} is below most published dense runs ({percent(USUAL[0])} to {percent(USUAL[1])})."
    elif mfu.number > MOST:
        lacks = f"an MFU of {mfu} is above all published runs: check how it is counted."
    elif not any(evidence.all(q) for q in (stated.GPU, GPU_NAME)) and not any(
        f.scope.run for f in evidence.all(run.MFU)
    ):
        lacks = f"an MFU of {mfu} is a part of a peak: no card is named whose peak it is, nor an earlier run beside it."
    elif evidence.all(stated.BETTER_ELSEWHERE):
        lacks = f"an MFU of {mfu} is usual, but the same is told to run better elsewhere."
    summary = f"MFU {mfu}, published dense 16-bit runs lie at {percent(USUAL[0])} to {percent(USUAL[1])}"
    return Proof(
        of="stated numbers",
        says=summary,
        because=(Reason.of(summary, mfu),),
        confidence=0.7,
        limit=None
        if lacks
        else Limit("matrix units", mfu.number, f"{summary}: the rest of the peak is what real steps leave",
                   (Fix("a trace of a few steps shows what the rest is made of", worth="certainty"),)),
        lacks=lacks,
        objects=bool(lacks),
        next=(TORCH_TRACE, STEP_SHAPE) if lacks else (),
    )  # fmt: skip
