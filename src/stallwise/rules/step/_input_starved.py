"""Input that does not keep up, while only suspected: from logs, settings and words."""

from __future__ import annotations

from stallwise.evidence.capture import DATA_PROBE, PY_SPY, TORCH_TRACE
from stallwise.evidence.catalog import change, run, stages, stated
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Account
from stallwise.findings.clue import Clue, above, below, says_one_of, yes
from stallwise.findings.finding import Finding, Fix, Gain, Reason
from stallwise.findings.owned import Owned
from stallwise.findings.symptom import Symptom

EXPLAINS = {
    Symptom.LOW_GPU_UTILISATION: "mostly",
    Symptom.SLOW_STEP: "mostly",
    Symptom.SUDDEN_SLOWDOWN: "often",
    Symptom.GRADUAL_SLOWDOWN: "at times",
    Symptom.PERIODIC_STALL: "at times",
    Symptom.SLOW_SCALING: "at times",
}

OWNS = Owned(
    Account.INPUT_WAIT,
    (stages.BATCH_WAIT, run.DATA_TIME),
    right=8,
    of=9,
    shares=(run.DATA_SHARE,),
    bursts=(change.LATE_BATCH_SHARE,),
)


def _crowded(evidence: Evidence) -> bool | None:
    return evidence.value(run.LOADER_WORKERS) > 1.5 * evidence.value(run.CPU_CORES)


def _one_core(evidence: Evidence) -> bool | None:
    busy, idle = evidence.value(run.HOST_BUSY_CORES), evidence.value(run.HOST_IDLE_SHARE, 1.0)
    return 0.8 < busy < 1.3 and idle > 0.8 if busy == busy else None


CLUES = (
    above(run.DATA_SHARE, 0.15, "decisive, needed", "a good part of all time goes to fetching batches", "fetching batches takes little time"),
    below(run.LOADER_WORKERS, 1, "fair when seen", "the loader runs in the main process (0 workers)", "the loader has workers of its own"),
    yes(run.ON_THE_FLY, "fair when seen", "samples are prepared while training"),
    Clue((run.LOADER_WORKERS, run.CPU_CORES), _crowded, "fair when seen", "more loader workers than CPU cores", "cores enough for the workers"),
    Clue((run.HOST_BUSY_CORES,), _one_core, "fair when seen", "one core is busy, the rest idle: the work is serial", "the host is not held by one core"),
    yes(stated.GPU_BUSY_UNCHANGED, "strong", "steps grew while the GPU's work did not: the host keeps it waiting", "the GPU itself works longer"),
    says_one_of(stated.CHANGED, ("dataset", "data ", "augment", "tokeniz", "storage", "loader", "disk", "bucket"), "strong when seen", "the data or its storage changed", "neither the data nor its storage changed"),
    above(change.STALL_IN_DATA, 0.5, "against", "the wait comes in bursts: most steps do not wait"),
    yes(run.NETWORK_STORAGE, "hint when seen", "the data lies on a network mount"),
    above(run.HOST_UNEXPLAINED_SHARE, 0.4, "against", "most of the time is in nothing that was timed"),
    yes(run.GC_AUTOMATIC, "against", "collection is automatic"),
    above(run.GC_COLLECTIONS, 1, "against", "collections are logged"),
)  # fmt: skip


def advise(evidence: Evidence) -> Finding:
    """Workers first, then cheaper samples, then storage."""
    share, step = evidence.get(run.DATA_SHARE), evidence.get(run.STEP_TIME)
    workers, cores = evidence.get(run.LOADER_WORKERS), evidence.get(run.CPU_CORES)
    series = next(iter(evidence.series(run.STEP_TIME)), None)
    mean_s = float(series.values.mean()) if series is not None else step.number if step else float("nan")
    wait_s = share.number * mean_s if share and mean_s == mean_s else float("nan")
    gain = Gain(0.5 * wait_s, wait_s, "the logged wait; half if CPU cores are the limit") if wait_s > 0 else None
    first = "Raise num_workers" + (f" from {workers}" if workers else "") + " until the wait stops falling"
    if workers and cores and workers.number > cores.number:
        first = f"Give the job CPU cores: {workers} workers share {cores}; workers beyond the cores only switch"
    because = [Reason.of(f"{share} of all time is spent fetching batches", share)] if share else []
    return Finding(
        headline="The GPU waits for input." if not share else f"The GPU waits for input: {share} of the time.",
        confidence=0.0,
        because=tuple(because),
        gain=gain,
        fixes=(
            Fix(first, gain, worth="the whole wait, if cores are free", cost="CPU cores and host memory", risk="oversubscription beyond the cores"),
            Fix("Make a sample cheaper: decode, tokenise and resize once, offline", gain, worth="the whole wait", cost="disk, one pass over the data",
                risk="less random augmentation"),
            Fix("Decode and augment on the GPU: DALI, nvJPEG, or transforms of whole batches after the copy", worth="the decoding part of the wait",
                cost="GPU memory, and a little of the GPU's time", risk="not bit-identical to the CPU's decoder"),
            Fix("Read ahead: prefetch_factor, pinned memory, persistent workers, local disk in place of a network mount", worth="what is left of the wait",
                cost="host memory", risk="memory grows with workers x prefetch"),
        ),
        avoid="Tuning kernels or buying a faster GPU: it would only wait faster.",
        next=(DATA_PROBE, PY_SPY, TORCH_TRACE),
    )  # fmt: skip
