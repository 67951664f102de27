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

from stallwise.doctor.findings.clue import Clue, above
from stallwise.doctor.findings.failure import Failure
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import MEMORY_SNAPSHOT, PY_SPY, TRAIN_LOG
from stallwise.evidence.catalog import change, hardware, job, run
from stallwise.evidence.catalog import memory as m
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit, show

GROWN = 1.25  # times the start: caches and warm-up add less
NOTICEABLE_BYTES = 3e8
# Of a process that was measured from inside: no other process is in the number, and growth that levels off is none. The C library takes
# memory for a thread in arenas of 64 MiB, so two of them are no leak yet.
MEASURED_BYTES = 128 * 2**20
POINTS = 6
SERIES_OF = {change.GPU_MEMORY_GROWTH: run.GPU_MEMORY, change.HOST_MEMORY_GROWTH: run.HOST_MEMORY}
LONG = 10


@rule()
def memory_leak(evidence: Evidence) -> Finding | None:
    """Judges growth on the device, on the host, and of live objects."""
    f = Failure(evidence)
    if f.phase == "evaluation" or f.fragmented or f.absurd:
        return None
    if f.phase == "optimizer" or not _enough(evidence):
        return None  # a handful of marks between phases of one step is no trend
    device = _growth(evidence, change.GPU_MEMORY_GROWTH, change.GPU_MEMORY_FACTOR)
    host = _growth(evidence, change.HOST_MEMORY_GROWTH, change.HOST_MEMORY_FACTOR)
    objects = evidence.value(change.OBJECT_GROWTH, 1.0) >= GROWN
    if not (device or host or objects):
        return None
    on_host = host and not device
    killed = bool(f.get(m.HOST_KILLED))
    because: list[Reason] = []
    for quantity, word in ((change.GPU_MEMORY_GROWTH, "GPU memory"), (change.HOST_MEMORY_GROWTH, "host memory"),
                           (change.OBJECT_GROWTH, "live objects")):  # fmt: skip
        fact = evidence.get(quantity)
        if fact is not None and (fact.quantity.unit is not Unit.BYTE or fact.number > MEASURED_BYTES):
            size = f"x{fact.number:.1f}" if fact.quantity.unit is not Unit.BYTE else show(fact.number, Unit.BYTE)
            because.append(Reason.of(f"{word} gained {size} {_over(evidence, quantity)} and still rises", fact))
    ends_in_s, full = _until_full(evidence)
    if killed:
        because.append(f.reason("the kernel killed a process for lack of host memory", m.HOST_KILLED))
    return Finding(
        headline=f"memory leaks on the {'host' if on_host else 'GPU' if device else 'host'}: it grows without end",
        confidence=0.9 if device or (host and _long_enough(evidence)) else 0.75,
        because=tuple(because),
        fixes=_host_fixes(evidence) if on_host else _device_fixes(),
        avoid="Do not empty the cache each step: what leaks is alive.",
        next=(PY_SPY,) if on_host else (MEMORY_SNAPSHOT,),
        explains=("oom-activations", "gradual-slowdown", "rank-died-first", "application-fault"),
        blocking=killed or bool(f.get(m.FAILED)),
        ends_in_s=ends_in_s,
        summary=full,
    )


def _long_enough(evidence: Evidence) -> bool:
    """A cache that fills for a while looks the same in a short record: ten marks that rise all along do not come from that."""
    if evidence.get(job.RECORDED_STEPS) is None:
        return True
    return any(len(s.x) >= LONG for s in evidence.series(run.HOST_MEMORY))


def _over(evidence: Evidence, quantity: Quantity) -> str:
    """How long it grew, and by how much a step, where the series tells."""
    steps = _grew_over(evidence, quantity)
    if not steps:
        return "over the log"
    return f"over {steps:.0f} steps ({show(evidence.value(quantity) / steps, Unit.BYTE)} a step)"


def _grew_over(evidence: Evidence, quantity: Quantity) -> float:
    """Steps in which it grew; 0 where no series tells."""
    of = SERIES_OF.get(quantity)
    series = next(iter(evidence.series(of)), None) if of is not None else None
    if series is None or series.over != "step" or len(series.x) < POINTS:
        return 0.0
    return max(float(series.x[-1] - series.x[0]), 0.0)


def _until_full(evidence: Evidence) -> tuple[float, str]:
    """Seconds until the memory is full at the measured slope, and the sentence; without end where the size is not known."""
    found = (math.inf, "")
    step_s = evidence.value(job.UNTRACED_STEP, evidence.value(run.STEP_TIME, 0.0))
    for quantity, total in ((change.GPU_MEMORY_GROWTH, hardware.GPU_MEMORY_TOTAL),
                            (change.HOST_MEMORY_GROWTH, run.HOST_MEMORY_TOTAL)):  # fmt: skip
        gained, whole = evidence.value(quantity, 0.0), evidence.value(total, 0.0)
        steps = _grew_over(evidence, quantity)
        if not (gained > 0 and whole > 0 and steps and step_s > 0) or evidence.get(job.RECORDED_STEPS) is None:
            continue
        held = float(next(iter(evidence.series(SERIES_OF[quantity]))).values[-1])
        left = max(whole - held, 0.0) / (gained / steps)
        if left * step_s < found[0]:
            says = f"At this rate its {show(whole, Unit.BYTE)} are full after {left:,.0f} more steps, {show(left * step_s, Unit.SECOND)}."
            found = (left * step_s, says)
    return found


def _enough(evidence: Evidence) -> bool:
    series = [s for q in (run.GPU_MEMORY, run.HOST_MEMORY, run.GRAPH_NODES) for s in evidence.series(q)]
    return not series or max(len(s.x) for s in series) >= POINTS


def _growth(evidence: Evidence, gained: Quantity, factor: Quantity) -> bool:
    least = MEASURED_BYTES if evidence.get(job.RECORDED_STEPS) is not None else NOTICEABLE_BYTES
    return evidence.value(gained, 0.0) > least and evidence.value(factor, GROWN) >= GROWN


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
