"""Measures: one measurement per file, found by walking this package.

A measure module defines `from_timeline(timeline)` (run once per rank, next to the file, in parallel) or
`from_evidence(evidence)` (run once over everything, after all ranks), or both. It derives and never judges. ORDER
(default 0) sorts the modules where one needs what another adds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import TypeVar

from stallwise.evidence.contained import kept, tried
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Source
from stallwise.evidence.ledger import Ledger
from stallwise.evidence.limits import STEP_S
from stallwise.evidence.timeline import Timeline

T = TypeVar("T")


# They have no `from_evidence`: where no timeline was read nobody loads them.
OF_TIMELINES = frozenset(
    "allocations attention chains collectives copies iterations launches ledger matrix near_roof optimizer places purposes recompute "
    "replayed_gains replayed_together step_timeline steps syncs top_copies top_kernels top_operators top_python_lines".split()
)


def all_measures() -> tuple[ModuleType, ...]:
    """Every measure module in the order they run."""
    return _measures(frozenset())


@cache
def _measures(without: frozenset[str]) -> tuple[ModuleType, ...]:
    names = (module.name for module in iter_modules(__path__) if not module.name.startswith("_"))
    found = [import_module(f"{__name__}.{name}") for name in names if name not in without]
    return tuple(sorted(found, key=lambda m: (getattr(m, "ORDER", 0), m.__name__)))


def measure_timeline(timeline: Timeline) -> Iterator[Item]:
    """All that can be said of one rank by itself, its profiler taken off first."""
    from stallwise.measures._without_profiler import clean_steps, without_profiler

    cleaned = without_profiler(timeline)
    if cleaned is not None:
        timeline = cleaned.timeline
        yield from clean_steps(cleaned)
    for module in all_measures():
        if hasattr(module, "from_timeline"):
            for item in kept(_late(module.from_timeline, timeline), _name(module), timeline.source):
                yield cleaned.told(item) if cleaned is not None and isinstance(item, Ledger) else item


def measure_evidence(evidence: Evidence) -> None:
    """Adds what only the whole shows: across ranks, across artifacts."""
    for module in _measures(OF_TIMELINES):
        if hasattr(module, "from_evidence"):
            evidence.add(tried(_late(module.from_evidence, evidence), _name(module), Source(""), STEP_S))


def _late(measure: Callable[[T], Iterable[Item]], of: T) -> Iterator[Item]:
    """Started only where its failure is contained."""
    yield from measure(of)


def _name(module: ModuleType) -> str:
    return f"the measure of {module.__name__.rpartition('.')[2].replace('_', ' ')}"
