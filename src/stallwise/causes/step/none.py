"""Healthy: nothing worth fixing was found.

## What it means
The device is busy nearly all the time, with the work the model asks for, at rates that such work reaches. What is
left are optional gains, each below a few percent or a matter of choice.

## Why it costs
It does not. Chasing the last percent costs more engineer time than it wins machine time, unless the fleet is large.

## What else looks so
High utilisation alone proves nothing: a kernel that waits for a peer or crawls through memory is busy too. A healthy
step is busy and near its roofs.

## Fix
Nothing is broken. Compile the model if it is not, use lower precision where the task allows, and look at the layout
of the job (batch, parallelism) with `stallwise plan`.

## How the gain is found
Optional gains are listed with their ranges; they are not added up into a promise.
"""

from __future__ import annotations

from stallwise.doctor.findings.finding import Finding
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.evidence import Evidence


@rule()
def none(evidence: Evidence) -> Finding | None:
    """Health is the absence of findings, so there is never one to return."""
    return None
