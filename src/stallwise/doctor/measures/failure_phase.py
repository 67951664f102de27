"""What a program was doing when its memory ran out, where it had announced it and no traceback tells."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.catalog import memory as m
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact

ORDER = 15
OWN_MEMORY = ("capture", "evaluation")  # phases whose memory is their own; a run trains or serves anyway


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """The phase that had begun in the same file and not ended."""
    known = evidence.text(m.PHASE)
    if known and known != "forward":  # everything that computes is a forward pass
        return
    open_phases: dict[str, str] = {}
    for event in sorted(evidence.events, key=lambda e: (e.source.file, int(e.source.where.removeprefix("line ") or 0))):
        phase = next((slot for slot in event.slots if slot in (*OWN_MEMORY, "training")), "")
        if event.kind == "phase-begins":
            open_phases[event.source.file] = phase
        elif event.kind == "phase-ends" and open_phases.get(event.source.file) == phase:
            open_phases.pop(event.source.file)
        elif event.kind == "out-of-memory" and open_phases.get(event.source.file) in OWN_MEMORY:
            yield Fact(m.PHASE, open_phases[event.source.file], event.source, event.scope, note="announced before it")
            return
