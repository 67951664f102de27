"""Matrix work on CUDA cores, while only suspected."""

from __future__ import annotations

from stallwise.evidence.catalog import expected, run, stated
from stallwise.findings.clue import over, says_one_of, yes

CLUES = (
    over(run.FLOP_RATE, expected.VECTOR_CEILING, 1.0, "against",
         "the rate is above what CUDA cores alone can do", "CUDA cores alone could do this rate"),
    over(stated.LIBRARY_FLOP_RATE, expected.VECTOR_CEILING, 1.0, "fair",
         "the library's rate needs tensor cores", "the library does not use tensor cores either"),
    says_one_of(stated.CHANGED, ("fp32", "tf32", "precision", "float32"), "strong when seen", "the precision changed", "the precision did not change"),
    yes(stated.WGMMA, "against", "the SASS holds tensor-core instructions", "the SASS holds no tensor-core instruction"),
)  # fmt: skip
