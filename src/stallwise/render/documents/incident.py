"""An incident as blocks: the first fault and what followed, the hosts to drain, the clocks in doubt."""

from __future__ import annotations

from stallwise.doctor.findings.incident import Incident
from stallwise.render.blocks import Block, Line, steps
from stallwise.render.incident import MOST_ROWS, clock_rows, first_line, incident_rows


def blocks_of(incident: Incident) -> list[Block]:
    """What every form shows."""
    rows = [Line(text, place) for text, place in incident_rows(incident)]
    head = [Line(first_line(incident))] if incident.first is not None else []
    return [
        steps("First fault", head, label="fault"),
        steps("What happened, by one clock (* first fault, > follows from it)", rows, label="order", most=MOST_ROWS),
        steps("Take out of service", incident.drain_lines, label="drain"),
        steps("Clocks in doubt", clock_rows(incident), label="clocks"),
    ]
