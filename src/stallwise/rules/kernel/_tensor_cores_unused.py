"""Matrix work on CUDA cores, while only suspected."""

from __future__ import annotations

from stallwise.evidence.catalog import expected, run, stated
from stallwise.findings.clue import over, yes

CLUES = (
    over(run.FLOP_RATE, expected.VECTOR_CEILING, 1.0, 0.04, 2.0,
         "the rate is above what CUDA cores alone can do", "CUDA cores alone could do this rate"),
    yes(stated.WGMMA, 0.05, 10.0, "the SASS holds tensor-core instructions", "the SASS holds no tensor-core instruction"),
)  # fmt: skip
