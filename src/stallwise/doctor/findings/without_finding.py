"""A kernel that no rule has a finding for: what its counters say, which is never that it is healthy.

Rules look for counters near a ceiling and for waste that they know. A kernel may take all of the time with every counter low:
one long chain of dependent loads, atomics on one address, a handful of blocks. Then the profile has not shown what it waits for.
"""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.doctor.findings.counters import NEAR_CEILING, Counters
from stallwise.doctor.findings.step_facts import percent
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Evidence

CEILINGS = {
    "tensor pipe": k.TENSOR_SHARE, "FMA pipe": k.FMA_SHARE, "FP64 pipe": k.FP64_SHARE, "ALU pipe": k.ALU_SHARE,
    "XU pipe": k.XU_SHARE, "LSU pipe": k.LSU_SHARE, "SM": k.SM_SHARE, "issue slots": k.ISSUE_SHARE,
    "DRAM": k.DRAM_SHARE, "L2": k.L2_SHARE, "L1": k.L1_SHARE,
}  # fmt: skip
NOT_COUNTED = "only timed"
NONE_NEAR = "no counter near its ceiling"
NO_RULE = "no finding"


@dataclass(frozen=True, slots=True)
class WithoutFinding:
    """What is known of such a kernel."""

    word: str  # for a cell of a table
    means: str  # in a sentence or two


def without_finding(evidence: Evidence, kernel: str) -> WithoutFinding:
    """From the counters of one kernel."""
    scope = next((s for s in evidence.scopes("kernel") if s.kernel == kernel), None)
    c = Counters(evidence.within(scope)) if scope is not None else Counters(Evidence())
    shares = {word: c.get(q) for word, q in CEILINGS.items() if c.knows(q)}
    if not shares:
        return WithoutFinding(NOT_COUNTED, "its time is known and nothing else: profile it with ncu --set full")
    name, most = max(shares.items(), key=lambda item: item[1])
    waits = f"; {c.stall}" if c.stall else ""
    if most >= NEAR_CEILING:
        return WithoutFinding(
            NO_RULE, f"{name} at {percent(most)} of its peak{waits}; no rule here says whether that is needed work"
        )
    return WithoutFinding(
        NONE_NEAR,
        f"the highest is {name} at {percent(most)}{waits}. That is not health: the time goes to latency (dependent loads, atomics on "
        "one address, barriers, too few blocks) that these counters do not name",
    )
