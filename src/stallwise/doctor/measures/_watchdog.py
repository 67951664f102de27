"""What a process group's watchdog says in its events: who waited in which collective, what was queued and what done."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

from stallwise.evidence.event import Event
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Source

MOST_DIGITS = 18  # of a count that a machine can hold
UNKNOWN = -10  # sequence numbers and counters start at -1
_WHOLE = re.compile(r"-?[0-9]+")
_FIELD = re.compile(r"(SeqNum|OpType|NumelIn|NumelOut|TensorShape)=([^,\[\]]+|\[[^\]]*\])")


@dataclass(slots=True)
class Waiting:
    """One rank of one group, as its watchdog tells."""

    rank: int
    group: str
    source: Source
    sequence: int = UNKNOWN
    op: str = ""
    state: str = ""
    elements_in: int = UNKNOWN
    elements_out: int = UNKNOWN
    enqueued: int = UNKNOWN
    completed: int = UNKNOWN


def waiting(evidence: Evidence) -> list[Waiting]:
    """Timeouts and status lines of each rank and group of a file, put together."""
    found: dict[tuple[str, int, str], Waiting] = {}
    for event in evidence.events_of("collective-timeout", "collective-status"):
        fields = {k: v.strip() for k, v in _FIELD.findall(event.word("fields"))}
        if event.kind == "collective-timeout" and not fields:
            continue  # a bare timeout names no collective
        mine = _entry(found, event)
        if fields:
            _timed_out(mine, fields)
        else:
            mine.enqueued, mine.completed = _whole(event, "enqueued"), _whole(event, "completed")
            if mine.sequence == UNKNOWN and "at" in event.slots:
                mine.sequence = _whole(event, "at")
    return list(found.values())


def _entry(found: dict[tuple[str, int, str], Waiting], event: Event) -> Waiting:
    """A line without its group belongs to the rank's only one, whichever came first."""
    file, group = event.source.file, event.scope.group or ""
    rank = -1 if event.scope.rank is None else event.scope.rank
    same = [key for key in found if key[:2] == (file, rank)]
    if not group and len(same) == 1:
        return found[same[0]]
    if group and (file, rank, "") in found:
        found[file, rank, group] = found.pop((file, rank, ""))
        found[file, rank, group].group = group
    return found.setdefault((file, rank, group), Waiting(rank, group, event.source))


def _timed_out(mine: Waiting, fields: dict[str, str]) -> None:
    mine.state = "timed out"
    mine.op = fields.get("OpType", mine.op)
    mine.sequence = _number(fields.get("SeqNum"), mine.sequence)
    mine.elements_in = _number(fields.get("NumelIn"), mine.elements_in)
    mine.elements_out = _number(fields.get("NumelOut"), mine.elements_out)
    if mine.elements_in < 0 and "TensorShape" in fields:  # releases before 2.0 print the shape only
        mine.elements_in = prod(_number(n, 0) for n in re.findall(r"[0-9]+", fields["TensorShape"]))


def _whole(event: Event, slot: str) -> int:
    number = event.number(slot)
    return int(number) if abs(number) < 10.0**MOST_DIGITS else UNKNOWN


def _number(text: str | None, default: int) -> int:
    return int(text) if text and len(text) <= MOST_DIGITS and _WHOLE.fullmatch(text) else default
