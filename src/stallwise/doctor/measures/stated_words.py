"""Numbers that people put into the sentence of their complaint."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.catalog import stated
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact

ORDER = -20
_EVERY = re.compile(r"every (\d+) ?(?:th )?(?:steps?|iterations?|batches|updates)", re.IGNORECASE)
_SAVING = re.compile(r"checkpointing|recompute|rematerial|offload|fsdp|zero.?[123]|shard", re.IGNORECASE)


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """The period of "every 500 steps", and whether the change was made to save memory."""
    for fact in evidence.all(stated.SYMPTOM):
        match = _EVERY.search(str(fact.value))
        if match and not evidence.all(stated.PERIOD_STEPS):
            yield Fact(stated.PERIOD_STEPS, float(match[1]), fact.source)
    for fact in evidence.all(stated.CHANGED):
        if not evidence.all(stated.AFTER_MEMORY_SAVING):
            yield Fact(stated.AFTER_MEMORY_SAVING, float(bool(_SAVING.search(str(fact.value)))), fact.source)
