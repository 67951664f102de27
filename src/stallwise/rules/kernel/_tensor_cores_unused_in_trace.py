"""The same cause over a whole run, as a trace shows it: by the names of matrix kernels and their share of the step."""

from __future__ import annotations

from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Account
from stallwise.findings.finding import Finding, Fix
from stallwise.findings.rule import rule
from stallwise.findings.step_facts import NOTICEABLE, StepFacts, ms, percent

SHORT = 70  # characters of a kernel's name that a person reads


@rule(s.SIMT_TIME, s.STEP_TIME)
def in_trace(evidence: Evidence) -> Finding | None:
    """Looks for matrix work on ordinary cores."""
    facts = StepFacts(evidence)
    slow = facts.seconds(s.SIMT_TIME)
    if facts.share(slow) < NOTICEABLE:
        return None
    low, high = facts.range_of(s.SIMT_SAVING)
    gain = facts.device_gain(
        low, high, "the same work at the card's tensor rate: TF32 at half its peak to 16 bits at its peak"
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
        fixes=(
            Fix(
                "bf16 autocast (torch.autocast('cuda', torch.bfloat16)); fp16 with a scaler on older cards",
                gain,
                cost="a few lines",
                risk="compare the loss curve",
            ),
            Fix(
                'torch.set_float32_matmul_precision("high") (TF32, where the card has it)',
                facts.gain(low, 0.9 * high, "TF32 instead of fp32"),
                cost="one line",
                risk="10 bits of mantissa in products",
            ),
        ),
        avoid="Do not tune kernels or batch sizes first: the ceiling of these units is the limit.",
        explains=("precision-headroom",),
        optional=facts.is_optional(gain),
    )
