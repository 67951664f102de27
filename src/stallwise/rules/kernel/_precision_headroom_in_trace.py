"""The same cause over a whole run, as a trace shows it: TF32 or fp32 products on matrix units."""

from __future__ import annotations

from stallwise.evidence.catalog import gains
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Account
from stallwise.findings.finding import Finding, Fix, Reason
from stallwise.findings.rule import rule
from stallwise.findings.step_facts import StepFacts, ms, percent

DOMINATES = 0.2  # of the step: below, switching the whole model for it is not worth the risk


@rule(s.WIDE_TIME, s.STEP_TIME)
def in_trace(evidence: Evidence) -> Finding | None:
    """Looks for matrix work in TF32."""
    facts = StepFacts(evidence)
    wide = facts.seconds(s.WIDE_TIME)
    if facts.share(wide) < DOMINATES:
        return None
    low, high = facts.range_of(s.WIDE_SAVING)
    gain = facts.less_work(
        gains.DTYPE, low, high, "matrix work at the 16-bit rate; at best other kernels move half the bytes too"
    )
    return Finding(
        headline=f"Matrix work runs in TF32 or fp32: {ms(wide)} of every {ms(facts.step_s)} would run faster in 16 bits.",
        confidence=0.8,
        account=Account.COMPUTE,
        gain=gain,
        because=(
            facts.because(
                f"{percent(facts.share(wide))} of the {facts.unit} is matrix work in a 32-bit type", s.WIDE_TIME
            ),
        ),
        against=(Reason("a solver or a loss that needs fp32 would be a reason to keep it"),),
        fixes=(
            Fix(
                "bf16 autocast around the model",
                gain,
                cost="a few lines",
                risk="compare the loss curve; keep reductions in fp32",
            ),
        ),
        avoid="Do not switch optimizer states first: products are where the time is.",
    )
