"""Memory that grows with every step, while only suspected."""

from __future__ import annotations

from stallwise.evidence.capture import MEMORY_SNAPSHOT, PY_SPY, TRAIN_LOG
from stallwise.evidence.catalog import change, run
from stallwise.evidence.evidence import Evidence
from stallwise.findings.clue import above
from stallwise.findings.finding import Finding, Fix, Reason
from stallwise.findings.symptom import Symptom

EXPLAINS = {
    Symptom.MEMORY_GROWTH: "mostly",
    Symptom.GRADUAL_SLOWDOWN: "mostly",
    Symptom.OUT_OF_MEMORY: "at times",
    Symptom.CRASH: "often",
}
CLUES = (
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
