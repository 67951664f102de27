"""Slow first iterations, while only suspected."""

from __future__ import annotations

from stallwise.evidence.catalog import change
from stallwise.findings.clue import above
from stallwise.findings.symptom import Symptom

EXPLAINS = {
    Symptom.SLOW_START: "mostly",
    Symptom.SERVER_WONT_START: "often",
    Symptom.HIGH_TTFT: "at times",
}
CLUES = (
    above(change.FIRST_STEPS_RATIO, 3.0, "fair, needed", "only the first steps are slow", "the first steps are like the rest"),
    above(change.STALL_IN_DATA, 0.5, "against", "later steps are as slow, for want of data"),
)  # fmt: skip
