"""Allocation retries in the loop, while only suspected."""

from __future__ import annotations

from stallwise.evidence.catalog import change, run
from stallwise.findings.clue import DECISIVE, above
from stallwise.findings.symptom import Symptom

EXPLAINS = (Symptom.SUDDEN_SLOWDOWN, Symptom.GRADUAL_SLOWDOWN, Symptom.PERIODIC_STALL, Symptom.SLOW_STEP)
CLUES = (
    above(change.RETRIES_AT_DROP, 0, DECISIVE, "the allocator flushes its cache and retries while training", "the allocator never had to retry"),
    above(run.ALLOC_RETRIES, 0, DECISIVE, "allocation retries are logged", "no retry is logged"),
)  # fmt: skip
