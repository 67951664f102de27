"""What the watchdogs of several ranks say together: who is behind, who never entered, whether the code is at fault."""

from __future__ import annotations

from collections import defaultdict

from stallwise.doctor.measures._watchdog import Waiting, waiting
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Source

NETWORK = ("verbs-completion-error", "nic-event", "address-unreachable")
NO_MISMATCH = "; with a network error beside it this is no mismatch of the code"


def hang_words(evidence: Evidence) -> dict[Source, str]:
    """A sentence for the watchdog's line of each rank that differs from the furthest one of its group."""
    groups: dict[str, list[Waiting]] = defaultdict(list)
    for one in waiting(evidence):
        if one.sequence >= 0:
            groups[one.group].append(one)
    network = bool(evidence.events_of(*NETWORK))
    found: dict[Source, str] = {}
    for ranks in groups.values():
        furthest = max(r.sequence for r in ranks)
        for one in ranks:
            says = _says(one, furthest)
            if says and len(ranks) > 1:
                found[one.source] = f"watchdog: rank {one.rank} {says}" + (
                    NO_MISMATCH if network and one.sequence < furthest else ""
                )
    return found


def _says(one: Waiting, furthest: int) -> str:
    behind = furthest - one.sequence
    if behind > 0:
        return f"is {behind} collective{'s' if behind > 1 else ''} behind ({one.op or 'collective'} {one.sequence} of {furthest})"
    if one.enqueued >= 0 and one.enqueued == one.completed:
        return f"never entered collective {one.sequence}: all it enqueued is completed"
    return ""
