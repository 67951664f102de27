"""What a recording of a device shows as a whole: how long it works, for what it waits, what happens once.

Refuted by: idle time of the device above a twentieth, matrix kernels of fp32 on ordinary cores, kernels whose names say nothing, steps
that differ. Names tell the precision of matrix kernels, not how near they are to the card's peak: so it speaks for the recording alone.
"""

from __future__ import annotations

from stallwise.causes.health._device_time import busy_share
from stallwise.causes.health.training_trace import ALIKE, BUSY, SHAPES
from stallwise.doctor.findings.finding import Reason
from stallwise.doctor.findings.proof import Proof
from stallwise.doctor.findings.step_facts import bytes_text, percent
from stallwise.doctor.findings.words import long_seconds
from stallwise.evidence.capture import NCU, Capture
from stallwise.evidence.catalog import recording as r
from stallwise.evidence.catalog import roofline
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact
from stallwise.evidence.quantity import Quantity

SEEN = 0.03  # of the recording: what is shorter is not worth a word
MATRIX_LED = 0.5  # of the kernel time in matrix work: then its precision decides
UNNAMED = 0.2  # of the kernel time in kernels whose names say nothing
MARKED = Capture(
    "a trace of 3 to 5 marked steady steps (prof.step() in the loop), after the start",
    "stallwise record -- python train.py",
    "one short run",
    minutes=10,
)


def recording(evidence: Evidence) -> Proof | None:
    """Of several ranks the one that is busy least."""
    worst = min(evidence.all(r.BUSY_SHARE), key=lambda f: f.number, default=None)
    if worst is None:
        return None
    sums = {
        q: _of(evidence, q, worst)
        for q in (r.LENGTH, r.STEPS_SHARE, r.DEVICE_SPAN, r.LEAD_IN, r.KERNELS, r.KERNEL_TIME)
    }
    copies = {
        q: _of(evidence, q, worst) for q in (r.COPY_TIME, r.READ_BACK_TIME, r.COPY_BYTES, r.UPLOAD_TIME, r.UPLOAD_BYTES)
    }
    work = _work(worst.number, sums)
    says = "; ".join([work, *_once(sums, copies), *_steps(evidence, sums[r.STEPS_SHARE]), *_card(evidence)])
    step_share = busy_share(evidence)  # without waits for other ranks, which keep a device busy with nothing
    lacks = _lacks(evidence, min(worst.number, step_share if step_share is not None else 1.0))
    return Proof(
        of="recording",
        says=says,
        because=(Reason.of(work, worst),),
        confidence=0.7,
        lacks=lacks,
        next=() if not lacks else _next(evidence, worst.number),
        covers_run=False,
        describes=True,
    )


def _of(evidence: Evidence, quantity: Quantity, beside: Fact) -> float:
    mine = [f.number for f in evidence.all(quantity) if f.scope == beside.scope and f.source == beside.source]
    return mine[-1] if mine else 0.0


def _work(busy: float, sums: dict[Quantity, float]) -> str:
    count = sums[r.KERNELS]
    mean = f" of {long_seconds(sums[r.KERNEL_TIME] / count)} in the mean" if count else ""
    kernels = f"{count:,.0f} kernel{'s' * (count != 1)}{mean}" if count else "no kernel"
    return f"{kernels}; the device works {busy:.1%} of the {long_seconds(sums[r.DEVICE_SPAN])} between its first and its last work"


def _once(sums: dict[Quantity, float], copies: dict[Quantity, float]) -> list[str]:
    """What a run does once, and copies, which are told apart from it."""
    parts = []
    if sums[r.LEAD_IN] > SEEN * sums[r.LENGTH]:
        parts.append(f"{long_seconds(sums[r.LEAD_IN])} are recorded before the device's first work")
    upload, spent = copies[r.UPLOAD_BYTES], copies[r.UPLOAD_TIME]
    if spent > SEEN * sums[r.DEVICE_SPAN]:
        parts.append(f"{bytes_text(upload)} are copied in {long_seconds(spent)} before the first matrix product, once")
    rest = copies[r.COPY_TIME] - spent
    if rest > SEEN * sums[r.DEVICE_SPAN]:
        size = f" ({bytes_text(copies[r.COPY_BYTES] - upload)})" if copies[r.COPY_BYTES] > upload else ""
        back = copies[r.READ_BACK_TIME]
        ways = (
            f", {long_seconds(back)} to the host and {long_seconds(copies[r.COPY_TIME] - back)} from it" if back else ""
        )
        parts.append(
            f"copies between host and device take {long_seconds(rest)}{size}{ways}; all kernels take {long_seconds(sums[r.KERNEL_TIME])}"
        )
    return parts


def _steps(evidence: Evidence, share: float) -> list[str]:
    if evidence.text(s.STEP_UNIT) == "window":
        return ["no steps are marked in it and none repeat"]
    count = evidence.value(s.STEP_COUNT, 0.0)
    return [
        f"{count:.0f} {evidence.text(s.STEP_UNIT, 'step')}{'s' * (count != 1)} cover{'s' * (count == 1)} {percent(share)} of the recording"
    ]


def _card(evidence: Evidence) -> list[str]:
    card = evidence.text(r.UNKNOWN_CARD)
    return [f"no data sheet of {card} is known here, so nothing is said of its ceilings"] if card else []


def _lacks(evidence: Evidence, busy: float) -> str:
    if busy < BUSY:
        return f"the device is idle {percent(1 - busy)} of the time between its first and its last work."
    matrix, unnamed = evidence.value(roofline.MATRIX_SHARE, 0.0), evidence.value(roofline.UNREAD_SHARE, 0.0)
    slow = evidence.value(s.SIMT_TIME, 0.0) / max(evidence.value(s.BUSY_TIME, 0.0), 1e-12)
    spread = max((f.number for f in evidence.all(roofline.STEP_SPREAD)), default=0.0)
    if matrix < MATRIX_LED or unnamed > UNNAMED:
        return f"the device works {busy:.1%} of the recording and waits for nothing; how fast its kernels are is not in this file."
    if slow > SEEN:
        return f"the device never waits, but {percent(slow)} of its work is fp32 on ordinary cores."
    if spread > ALIKE:
        return f"the device never waits, but the recorded steps differ by {percent(spread)}."
    return ""


def _next(evidence: Evidence, busy: float) -> tuple[Capture, ...]:
    """A device that waits for nothing is asked about its kernels; one that waits, about its steps."""
    if busy < BUSY:
        return (MARKED,) if evidence.text(s.STEP_UNIT) == "window" else ()
    return (NCU,) if evidence.value(roofline.MATRIX_SHARE, 0.0) < MATRIX_LED else (SHAPES,)
