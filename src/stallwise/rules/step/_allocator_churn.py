"""Allocation retries in the loop, while only suspected."""

from __future__ import annotations

from stallwise.evidence.catalog import change, run
from stallwise.findings.clue import above
from stallwise.findings.symptom import Symptom

EXPLAINS = {
    Symptom.SUDDEN_SLOWDOWN: "at times",
    Symptom.GRADUAL_SLOWDOWN: "often",
    Symptom.PERIODIC_STALL: "at times",
    Symptom.SLOW_STEP: "at times",
}
CLUES = (
    above(change.RETRIES_AT_DROP, 0, "decisive, needed", "the allocator flushes its cache and retries while training", "the allocator never had to retry"),
    above(run.ALLOC_RETRIES, 0, "decisive, needed", "allocation retries are logged", "the allocator never had to retry"),
)  # fmt: skip
