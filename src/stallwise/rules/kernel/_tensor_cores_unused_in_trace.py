"""The same cause over a whole run, as a trace shows it: by the names of matrix kernels and their share of the step."""

from __future__ import annotations

from stallwise.evidence.catalog import gains
from stallwise.evidence.catalog import step as s
from stallwise.evidence.catalog.card import HAND_WRITTEN_SHARE
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Account
from stallwise.findings.arithmetic import narrower_types
from stallwise.findings.finding import Finding, Fix
from stallwise.findings.rule import rule
from stallwise.findings.step_facts import NOTICEABLE, StepFacts, ms, percent

MOSTLY = 0.5  # of the slow matrix time outside library calls: autocast does not reach it
SHORT = 70  # characters of a kernel's name that a person reads


@rule(s.SIMT_TIME, s.STEP_TIME)
def in_trace(evidence: Evidence) -> Finding | None:
    """Looks for matrix work on ordinary cores."""
    facts = StepFacts(evidence)
    slow = facts.seconds(s.SIMT_TIME)
    if facts.share(slow) < NOTICEABLE:
        return None
    low, high = facts.range_of(s.SIMT_SAVING)
    gain = facts.less_work(
        gains.DTYPE, low, high, "the same work at the card's tensor rate: TF32 at half its peak to 16 bits at its peak"
    )
    matrix = facts.seconds(s.GEMM_TIME) + facts.seconds(s.CONV_TIME)
    return Finding(
        headline=f"Matrix work runs without tensor cores: {ms(slow)} of every {ms(facts.step_s)}.",
        confidence=0.94,
        account=Account.COMPUTE,
        gain=gain,
        because=(
            facts.because(
                f"{percent(slow / matrix if matrix else 0)} of the matrix time is in fp32 kernels of ordinary cores",
                s.SIMT_TIME,
            ),
            facts.because(f"for example {facts.word(s.SIMT_KERNEL)[:SHORT]}", s.SIMT_KERNEL),
        ),
        fixes=_fixes(evidence, facts, low, high),
        avoid="Do not tune kernels or batch sizes first: the ceiling of these units is the limit.",
        explains=("precision-headroom",),
        optional=facts.is_optional(gain),
    )


def _fixes(evidence: Evidence, facts: StepFacts, low: float, high: float) -> tuple[Fix, ...]:
    gain = facts.gain(low, high, "16-bit products instead of fp32")
    if evidence.value(HAND_WRITTEN_SHARE, 0.0) > MOSTLY:
        return (
            Fix("call the library's product instead of the hand-written kernel, or use its matrix instructions", gain,
                cost="the kernel", risk="rounding of narrower inputs"),
        )  # fmt: skip
    return narrower_types(evidence, gain, facts.gain(low, 0.9 * high, "TF32 instead of fp32"))
