"""The same cause over a whole run, as a trace shows it: most of the device's time goes into kernels that only move data."""

from __future__ import annotations

from stallwise.evidence.capture import NCU
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Account
from stallwise.findings.finding import Finding, Fix
from stallwise.findings.rule import rule
from stallwise.findings.step_facts import StepFacts, ms, percent

MOST = 0.6  # of the busy time: below, products still decide
BUSY = 0.8  # of the step: an idle device is not bound by its memory


@rule(s.MEMORY_BOUND_TIME, s.BUSY_TIME, s.STEP_TIME)
def in_trace(evidence: Evidence) -> Finding | None:
    """Looks for a step made of norms, activations, copies, optimizers and other streams."""
    facts = StepFacts(evidence)
    moving, busy = facts.seconds(s.MEMORY_BOUND_TIME), facts.seconds(s.BUSY_TIME)
    if facts.share(busy) < BUSY or moving < MOST * busy:
        return None
    gain = facts.device_gain(0.0, 0.3 * moving, "fewer bits or fewer passes; nothing at the roof itself")
    return Finding(
        headline=f"The {facts.unit} is limited by memory: {percent(moving / busy)} of the busy time only moves data.",
        confidence=0.6,
        account=Account.COMPUTE,
        gain=gain,
        because=(
            facts.because(f"norms, pointwise kernels, copies and the optimizer take {ms(moving)}", s.MEMORY_BOUND_TIME),
        ),
        fixes=(
            Fix("fuse chains (torch.compile)", gain, cost="compile time"),
            Fix("16-bit activations, channels_last for convolutions", gain, risk="compare the loss"),
        ),
        avoid="Do not look for faster matrix kernels: they are the smaller part.",
        next=(NCU,),
        optional=True,
    )
