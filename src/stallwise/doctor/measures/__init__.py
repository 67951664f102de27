"""Measures: one measurement per file, found by walking this package.

A measure module defines `from_timeline(timeline)` (run once per rank, next to the file, in parallel) or
`from_evidence(evidence)` (run once over everything, after all ranks), or both. It derives and never judges. ORDER
(default 0) sorts the modules where one needs what another adds. What each looks at is compiled (`make index`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from stallwise.evidence.compiled import Rows, load
from stallwise.evidence.error_boundary import kept, tried
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Source
from stallwise.evidence.inputs import Inputs
from stallwise.evidence.ledger import Ledger
from stallwise.evidence.limits import STEP_S
from stallwise.evidence.timeline import Timeline

T = TypeVar("T")


@cache
def _rows() -> Rows:
    """What is known of every measure before its module is loaded, in the order in which they run."""

    def build() -> tuple[Rows, set[Path]]:
        from stallwise.doctor.measures import _index

        return _index.build()

    return load(Path(__file__).parent, build)


@cache
def _of_evidence() -> tuple[tuple[str, Inputs], ...]:
    """Measures that run over everything, with what each looks at."""
    return tuple((name, Inputs.of(row["reads"])) for name, row in _rows().items() if "reads" in row)


def measure_timeline(timeline: Timeline) -> Iterator[Item]:
    """All that can be said of one rank by itself, its profiler taken off first."""
    from stallwise.doctor.measures._without_profiler import clean_steps, without_profiler

    cleaned = without_profiler(timeline)
    if cleaned is not None:
        timeline = cleaned.timeline
        yield from clean_steps(cleaned)
    for name in (name for name, row in _rows().items() if row["of_timeline"]):
        measure = import_module(f"{__name__}.{name}").from_timeline
        for item in kept(_late(measure, timeline), _name(name), timeline.source):
            yield cleaned.with_clean_step(item) if cleaned is not None and isinstance(item, Ledger) else item


def measure_evidence(evidence: Evidence) -> None:
    """Adds what only the whole shows: across ranks, across artifacts. A measure of which no input was read is not loaded."""
    for name, inputs in _of_evidence():
        if inputs.present(evidence):
            measure = import_module(f"{__name__}.{name}").from_evidence
            evidence.add(tried(_late(measure, evidence), _name(name), Source(""), STEP_S))


def _late(measure: Callable[[T], Iterable[Item]], of: T) -> Iterator[Item]:
    """Started only where its failure is contained."""
    yield from measure(of)


def _name(measure: str) -> str:
    return f"the measure of {measure.replace('_', ' ')}"
