"""The same cause over a whole run, as a trace shows it: matrix products in double precision."""

from __future__ import annotations

from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Account
from stallwise.findings.finding import Finding, Fix, Reason
from stallwise.findings.rule import rule
from stallwise.findings.step_facts import StepFacts, ms, percent

NOTABLE = 0.1  # of the step: a small solve in double precision may be meant
# Cards for data centres do fp64 products at about the rate of fp32 on ordinary cores, consumer cards at a sixty-fourth of it.
SLOWER = (2.0, 30.0)


@rule(s.DOUBLE_TIME, s.STEP_TIME)
def in_trace(evidence: Evidence) -> Finding | None:
    """Looks for matrix work in double precision."""
    facts = StepFacts(evidence)
    double = facts.seconds(s.DOUBLE_TIME)
    if facts.share(double) < NOTABLE:
        return None
    low, high = (double * (1 - 1 / ratio) for ratio in SLOWER)
    gain = facts.device_gain(low, high, "the same products in single precision or less")
    return Finding(
        headline=f"Matrix work runs in double precision: {ms(double)} of every {ms(facts.step_s)}.",
        confidence=0.88,
        account=Account.COMPUTE,
        gain=gain,
        because=(facts.because(f"{percent(facts.share(double))} of the {facts.unit} is fp64 products", s.DOUBLE_TIME),),
        against=(Reason("a solver may need it"),),
        fixes=(Fix("find the float64 tensor (numpy arrays default to it) and convert it once", gain, cost="one line"),),
        avoid="Do not lower the precision of the whole model before this one tensor.",
    )
