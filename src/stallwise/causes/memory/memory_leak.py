"""Memory grows with every step or epoch and never comes back.

## What it means
Something keeps references: losses summed with their graph, outputs appended to a list, hooks, a growing cache. On the host:
worker processes that copy a Python list of objects page by page (every touch of a reference count copies its page), or
persistent workers that pile up buffers.

## Why it costs
The run slows as it swaps or collects, then dies, often hours in, with a batch that fitted before.

## What else looks so
The allocator's warm-up grows for some steps and stops. A longer sequence lifts the peak once. Fragmentation raises reserved
memory while live tensors stay flat.

## Fix
Detach what is kept (`loss.item()`, `.detach()`), clear lists and hooks, zero gradients; keep annotations in numpy or Arrow
arrays instead of lists of Python objects; fewer or non-persistent workers.

## How the gain is found
The slope a step, and from it the step at which the memory is full.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from stallwise.doctor.findings.clue import Clue, above
from stallwise.doctor.findings.failure import Failure
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import MEMORY_SNAPSHOT, PY_SPY, TRAIN_LOG
from stallwise.evidence.catalog import change, hardware, job, run
from stallwise.evidence.catalog import memory as m
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact, Series, Table
from stallwise.evidence.quantity import Quantity
from stallwise.evidence.user_lines import GROWING
from stallwise.units import Unit, show

GROWN = 1.25  # times the start: caches and warm-up add less
NOTICEABLE_BYTES = 3e8
# Of a process that was measured from inside: no other process is in the number, and growth that levels off is none. The C library takes
# memory for a thread in arenas of 64 MiB, so two of them are no leak yet.
MEASURED_BYTES = 128 * 2**20
POINTS = 6
SERIES_OF = {change.GPU_MEMORY_GROWTH: run.GPU_MEMORY, change.HOST_MEMORY_GROWTH: run.HOST_MEMORY}
FACTOR_OF = {
    change.GPU_MEMORY_GROWTH: change.GPU_MEMORY_FACTOR,
    change.HOST_MEMORY_GROWTH: change.HOST_MEMORY_FACTOR,
}
TOTAL_OF = {change.GPU_MEMORY_GROWTH: hardware.GPU_MEMORY_TOTAL, change.HOST_MEMORY_GROWTH: run.HOST_MEMORY_TOTAL}
PER = {"step": "step", "time_s": "second"}  # what a series is over, in words
LONG = 10


@rule()
def memory_leak(evidence: Evidence) -> Finding | None:
    """Judges growth on the device, on the host, and of live objects."""
    f = Failure(evidence)
    if f.phase in ("evaluation", "optimizer") or f.fragmented or f.absurd or not _enough(evidence):
        return None  # a handful of marks between phases of one step is no trend
    grown = [g for gained in SERIES_OF if (g := _growth(evidence, gained)) is not None]
    objects = evidence.get(change.OBJECT_GROWTH)
    if objects is not None and objects.number < GROWN:
        objects = None
    if not grown and objects is None:
        return None
    device = any(g.fact.quantity is change.GPU_MEMORY_GROWTH for g in grown)
    killed = bool(f.get(m.HOST_KILLED))
    keeps = next((_Keeps(table) for table in evidence.table(GROWING)), None)
    because = [Reason.of(g.says, g.fact) for g in grown]
    because += [Reason.of(f"live objects gained x{objects.number:.1f} and still rise", objects)] if objects else []
    because += [Reason(keeps.says, (keeps.source,))] if keeps is not None else []
    because += [f.reason("the kernel killed a process for lack of host memory", m.HOST_KILLED)] if killed else []
    ends_in_s, full = min((g.full for g in grown), default=(math.inf, ""))
    return Finding(
        headline=f"memory leaks on the {'GPU' if device else 'host'}: {keeps.headline if keeps else 'it grows without end'}",
        confidence=0.9 if device or any(g.long for g in grown) else 0.75,
        because=tuple(because),
        fixes=keeps.fixes if keeps else _device_fixes() if device else _host_fixes(evidence),
        avoid="Do not empty the cache each step: what leaks is alive.",
        next=() if keeps else (MEMORY_SNAPSHOT,) if device else (PY_SPY,),
        explains=("oom-activations", "gradual-slowdown", "rank-died-first", "application-fault"),
        blocking=killed or bool(f.get(m.FAILED)),
        ends_in_s=ends_in_s,
        summary=full,
    )


class _Keeps:
    """The container that grew while memory did."""

    def __init__(self, table: Table) -> None:
        first = {name: column[0] for name, column in table.columns.items()}
        self.source = table.source
        name, size, what = first["name"], show(float(first["bytes"]), Unit.BYTE), first["what"]
        a_step = first["gained"] / first["steps"]
        each = "an element" if round(a_step, 2) == 1 else f"{a_step:.3g} elements"
        self.headline = f"{name} gains {each} a step"
        self.says = (
            f"{name}, a {first['of']}, gained {first['gained']} elements in {first['steps']} steps: {what}, {size} each"
        )
        graph = "with its graph" in what
        self.says = self.says.rpartition(",")[0] if graph else self.says  # what a graph holds has no size here
        keep = (
            "keep numbers, not graphs: loss.item() or .detach() on what is stored"
            if graph
            else f"bound or clear {name}, or store what is needed of each element"
        )
        self.fixes = (Fix(keep, worth="stops the growth"),)


@dataclass(frozen=True)
class _Growth:
    """Memory that grew: the fact, its series where there is one, and the size of the whole."""

    fact: Fact
    series: Series | None
    whole: float
    step_s: float

    @property
    def word(self) -> str:
        """Which memory."""
        return "GPU memory" if self.fact.quantity is change.GPU_MEMORY_GROWTH else "host memory"

    @property
    def over(self) -> float:
        """Steps or seconds in which it grew; 0 where no series tells."""
        known = self.series is not None and len(self.series.x) >= POINTS and self.series.over in PER
        return max(float(self.series.x[-1] - self.series.x[0]), 0.0) if known and self.series is not None else 0.0

    @property
    def says(self) -> str:
        """How much it gained, in how long."""
        size = show(self.fact.number, Unit.BYTE)
        if not self.over or self.series is None:
            return f"{self.word} gained {size} over the log and still rises"
        per, rate = PER[self.series.over], show(self.fact.number / self.over, Unit.BYTE)
        return f"{self.word} gained {size} over {self.over:.0f} {per}s ({rate} a {per}) and still rises"

    @property
    def long(self) -> bool:
        """A cache that fills for a while looks the same in a short record: ten marks that rise all along do not come from that."""
        return self.series is None or len(self.series.x) >= LONG

    @property
    def full(self) -> tuple[float, str]:
        """Seconds until the memory is full at this slope, and the sentence; without end where the size is not known."""
        if self.series is None or not self.over or self.whole <= 0:
            return math.inf, ""
        left = max(self.whole - float(self.series.values[-1]), 0.0) / (self.fact.number / self.over)
        seconds = left * (self.step_s if self.series.over == "step" else 1.0)
        if not seconds > 0:
            return math.inf, ""
        steps = f"{left:,.0f} more steps, " if self.series.over == "step" else ""
        return (
            seconds,
            f"At this rate its {show(self.whole, Unit.BYTE)} are full after {steps}{show(seconds, Unit.SECOND)}.",
        )


def _growth(evidence: Evidence, gained: Quantity) -> _Growth | None:
    """The one with most marks: what was measured from inside before what a log prints now and then."""
    recorded = evidence.get(job.RECORDED_STEPS) is not None
    least = MEASURED_BYTES if recorded else NOTICEABLE_BYTES
    factors = {(f.source, f.scope): f.number for f in evidence.all(FACTOR_OF[gained])}
    facts = [f for f in evidence.all(gained) if f.number > least and factors.get((f.source, f.scope), GROWN) >= GROWN]
    fact = max(facts, key=lambda f: f.samples, default=None)
    if fact is None:
        return None
    series = next(
        (s for s in evidence.series(SERIES_OF[gained]) if (s.source, s.scope) == (fact.source, fact.scope)), None
    )
    whole = evidence.value(TOTAL_OF[gained], 0.0) if recorded else 0.0
    return _Growth(fact, series, whole, evidence.value(job.UNTRACED_STEP, evidence.value(run.STEP_TIME, 0.0)))


def _enough(evidence: Evidence) -> bool:
    series = [s for q in (run.GPU_MEMORY, run.HOST_MEMORY, run.GRAPH_NODES) for s in evidence.series(q)]
    return not series or max(len(s.x) for s in series) >= POINTS


def _device_fixes() -> tuple[Fix, ...]:
    return (
        Fix("keep numbers, not graphs: loss.item(), .detach() on what is stored", worth="stops the growth"),
        Fix("clear lists, hooks and caches between steps; zero gradients with set_to_none"),
    )


def _host_fixes(evidence: Evidence) -> tuple[Fix, ...]:
    workers = evidence.value(run.LOADER_WORKERS, 0.0)
    if not workers and evidence.get(job.RECORDED_STEPS) is not None:  # the loop's own process holds it
        return (*_device_fixes(), Fix("bound what caches samples or results"))
    first = Fix("hold annotations in numpy or Arrow arrays instead of lists of Python objects",
                worth=f"{workers:.0f} workers stop copying them" if workers else "workers stop copying them")  # fmt: skip
    return (first, Fix("fewer workers, or persistent_workers=False", cost="slower epochs"),
            Fix("look for buffers that each worker or epoch adds to"))  # fmt: skip


# Memory that grows with every step, while only suspected.
CLUES = (
    Clue((change.GPU_MEMORY_GROWTH,), lambda e: e.value(change.GPU_MEMORY_GROWTH) > NOTICEABLE_BYTES, "strong",
         "GPU memory keeps growing"),
    Clue((change.HOST_MEMORY_GROWTH,), lambda e: e.value(change.HOST_MEMORY_GROWTH) > NOTICEABLE_BYTES, "strong",
         "host memory keeps growing"),
    above(change.GPU_MEMORY_FACTOR, 1.1, "decisive", "GPU memory rises all through the log", "GPU memory is flat"),
    above(change.HOST_MEMORY_FACTOR, 1.1, "decisive", "host memory rises all through the log", "host memory is flat"),
    above(change.OBJECT_GROWTH, 1.5, "strong", "nodes or objects pile up", "the number of objects is steady"),
)  # fmt: skip


def advise(evidence: Evidence) -> Finding:
    """Where it grows decides: a kept graph on the GPU, copied pages in loader workers on the host."""
    gpu = max(evidence.all(change.GPU_MEMORY_GROWTH), key=lambda f: f.number, default=None)
    host = max(evidence.all(change.HOST_MEMORY_GROWTH), key=lambda f: f.number, default=None)
    workers = evidence.value(run.LOADER_WORKERS, 0.0)
    because = [Reason.of(f"GPU memory gained {gpu} over the log and still rises", gpu)] if gpu else []
    if host:
        because.append(Reason.of(f"host memory gained {host} over the log and still rises", host))
    drift = evidence.get(change.DRIFT_RATIO)
    if drift:
        because.append(Reason.of(f"steps grew {drift} slower meanwhile", drift))
    kept = Fix("Do not keep tensors that carry a graph: loss.item() or .detach() before storing or summing", worth=f"frees {gpu}" if gpu else "stops the growth",
               cost="one line", risk="none")  # fmt: skip
    pages = Fix("Hold the dataset's index in numpy, Arrow or shared memory in place of Python lists and dicts", worth=f"frees {host}" if host else "stops the growth",
                cost="a change of the dataset class", risk="none")  # fmt: skip
    order = (pages, kept) if host and not gpu and workers > 0 else (kept, pages)
    return Finding(
        headline="Memory grows with every step: something keeps what it should let go.",
        confidence=0.0,
        because=tuple(because),
        fixes=(
            *order,
            Fix("Build graphs, summaries and hooks once, outside the loop", worth="stops the drift in step time as well", cost="moving code", risk="none"),
        ),
        avoid="More memory, empty_cache() or smaller batches: they only postpone the end.",
        next=(MEMORY_SNAPSHOT, TRAIN_LOG, PY_SPY),
    )  # fmt: skip
