"""What is wrong, before asking why: symptoms read off stated facts, logs and metrics, or from the user's own words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from stallwise.evidence.catalog import change, memory, run, stated
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import STATED, Fact
from stallwise.evidence.quantity import Quantity
from stallwise.findings.finding import Reason
from stallwise.findings.symptom import Symptom
from stallwise.units import Unit, show

LOW_MFU = 0.3  # 215 of 220 published BF16 training runs with an MFU lie above
WORSE = 1.1  # a before/after ratio below this is what runs do by themselves
COLLAPSED = 2.5  # latency that grew by more than this under load has left the linear regime
IDLE_GPU = 0.6  # utilisation below this leaves a third of the card unused even by nvidia-smi's generous count
LOST_ACCURACY = 0.02  # points of accuracy that FP8 papers report as noise
SLOW_BOOT = 3.0  # first steps over the steady one
LONG_BOOT_S = 60.0  # and what they must cost together: every run compiles and warms up for seconds
MEMORY_GREW = 1.15
STALLED = 0.01  # of all time in isolated slow steps; a save now and then costs less
LOADING = 0.15  # of a step spent waiting for its batch
DEVICE_BOUND = 0.92  # device time over host time above which a synchronisation only waits for queued work
MANY = 3  # slow steps that make a pattern


@dataclass(frozen=True, slots=True)
class Complaint:
    """A symptom and why we believe it is there."""

    symptom: Symptom
    reason: Reason

    @property
    def by_person(self) -> bool:
        """True when somebody said so, in words or in numbers of their own; False when only an artifact shows it."""
        return any(source.file == STATED.file for source in self.reason.sources)


def complaints(evidence: Evidence) -> list[Complaint]:
    """Every symptom that the evidence shows or the user states, surest first."""
    found: dict[Symptom, Complaint] = {}
    for fact in evidence.all(stated.SYMPTOM):
        for symptom in _in_words(str(fact.value)):
            found.setdefault(symptom, Complaint(symptom, Reason.of(f"you say: {fact.value}", fact)))
    for symptom, detect in _DETECTORS:
        reason = detect(evidence)
        if reason is not None:
            found.setdefault(symptom, Complaint(symptom, reason))
    return list(found.values())


_WORDS: tuple[tuple[str, Symptom], ...] = (
    (
        r"(server|engine|vllm|sglang|service).*(not start|never start|won.?t start|fails to start)|does ?n.?t start",
        Symptom.SERVER_WONT_START,
    ),
    (r"hang|stuck|deadlock|time[ds]? ?out|frozen", Symptom.HANG),
    (r"out of memory|\boom\b", Symptom.OUT_OF_MEMORY),
    (r"memory (leak|grow)|leak", Symptom.MEMORY_GROWTH),
    (r"\bnan\b|diverge|loss spike|loss explode", Symptom.BAD_LOSS),
    (r"accuracy|quality|perplexity|eval.*(worse|drop)", Symptom.ACCURACY_DROP),
    (r"every .*(steps|iterations|batches)|periodic|step time.*spik|spiky|stutter", Symptom.PERIODIC_STALL),
    (r"ttft|first token", Symptom.HIGH_TTFT),
    (r"(latency|throughput).*(under load|qps|concurren)|collapse", Symptom.SERVING_COLLAPSE),
    (
        r"(slow|low).*(tok|token|serving|inference|decode)|(tok|token|decode|inference|generation).*slow",
        Symptom.SERVING_SLOW,
    ),
    (r"bubble|pipeline.*(idle|wait)", Symptom.PIPELINE_IDLE),
    (r"all.?reduce|collective|nccl.*slow", Symptom.SLOW_COLLECTIVE),
    (r"scal(e|ing)", Symptom.SLOW_SCALING),
    (r"(triton|custom|fused).*(slow|lose)|slower than (pytorch|cublas|library|eager)", Symptom.CUSTOM_KERNEL_SLOWER),
    (r"kernel.*slow|slow.*(kernel|gemm|matmul)", Symptom.SLOW_KERNEL),
    (r"(mfu|throughput|speed|tokens).*(drop|fell|fall|collapse)|suddenly slow", Symptom.SUDDEN_SLOWDOWN),
    (r"slower (and slower|over time)|gradual", Symptom.GRADUAL_SLOWDOWN),
    (r"(gpu|utili[sz]ation).*(idle|low)|low util", Symptom.LOW_GPU_UTILISATION),
    (r"(first|start).*(slow|long)|slow start|cold start", Symptom.SLOW_START),
    (r"xid|ecc|fell off|fallen off", Symptom.GPU_ERROR),
    (r"crash|killed|dies|segfault|sigkill", Symptom.CRASH),
    (r"slow", Symptom.SLOW_STEP),
)


def _in_words(text: str) -> Iterator[Symptom]:
    lowered = text.lower().replace("_", " ").replace("-", " ")
    exact = [s for s in Symptom if s.name.lower().replace("_", " ") == lowered or s.value == text.lower()]
    if exact:
        yield from exact
        return
    for pattern, symptom in _WORDS:
        if re.search(pattern, lowered):
            yield symptom
            return


def before(evidence: Evidence, quantity: Quantity) -> Fact | None:
    """The same quantity when all was well."""
    return evidence.get(quantity, run="before")


def now(evidence: Evidence, quantity: Quantity) -> Fact | None:
    """The quantity of the run in question."""
    found = [f for f in evidence.all(quantity) if f.scope.run != "before"]
    return min(reversed(found), key=lambda f: (f.stated, len(f.scope.to_dict())), default=None)


def ratio(evidence: Evidence, quantity: Quantity) -> float | None:
    """Now over before; None where either is unknown."""
    a, b = now(evidence, quantity), before(evidence, quantity)
    return a.number / b.number if a and b and b.number else None


def _fell(evidence: Evidence) -> Reason | None:
    if evidence.all(stated.QPS) and before(evidence, stated.QPS):
        return None  # a server under two loads, not a run that changed
    for quantity in (run.MFU, run.TOKENS_PER_S, run.SAMPLES_PER_S, run.FLOP_RATE):
        change_of = ratio(evidence, quantity)
        if change_of is not None and change_of < 1 / WORSE:
            a, b = now(evidence, quantity), before(evidence, quantity)
            assert a and b
            return Reason.of(f"{quantity.name.split('.')[-1]} fell from {b} to {a}", a, b)
    grew = ratio(evidence, run.STEP_TIME)
    if grew is not None and grew > WORSE:
        a, b = now(evidence, run.STEP_TIME), before(evidence, run.STEP_TIME)
        assert a and b
        return Reason.of(f"a step takes {a} where it took {b}", a, b)
    return _fact_reason(evidence, change.DROP_RATIO, WORSE, "steps became {v} slower")


def _fact_reason(evidence: Evidence, quantity: Quantity, limit: float, text: str) -> Reason | None:
    worst = max(evidence.all(quantity), key=lambda f: f.number, default=None)
    if worst is None or not worst.number > limit:
        return None
    return Reason.of(text.format(v=worst), worst)


def _stalls(evidence: Evidence) -> Reason | None:
    collections = evidence.get(run.GC_COLLECTIONS)
    if collections and collections.number >= 2:
        return Reason.of(f"{collections} full garbage collections are logged", collections)
    count, share = evidence.get(change.STALL_COUNT), evidence.get(change.STALL_SHARE)
    if count and share and count.number >= MANY and share.number > STALLED:
        return Reason.of(f"{count} steps stand out, {share} of all time", count)
    period = evidence.get(stated.PERIOD_STEPS)
    return Reason.of(f"every {period} steps one is slow", period) if period else None


def _idle(evidence: Evidence) -> Reason | None:
    busy = now(evidence, run.GPU_BUSY)
    if busy and busy.number < IDLE_GPU:
        return Reason.of(f"the GPU is busy {busy} of the time", busy)
    from stallwise.evidence.catalog import quantities

    smi = quantities().get("gpu.utilisation")
    facts = evidence.all(smi) if smi else []
    mean = sum(f.number for f in facts) / len(facts) if facts else 1.0
    timed = any(evidence.all(q) for q in (run.STEP_TIME, run.SAMPLES_PER_S, run.TOKENS_PER_S, run.LOSS))
    if facts and mean < IDLE_GPU and timed:  # an idle card without a job on it is no complaint
        return Reason.of(f"the GPU is busy {show(mean, Unit.SHARE)} of the time while the job runs", facts[0])
    return None


def _grows(evidence: Evidence) -> Reason | None:
    for quantity in (change.GPU_MEMORY_FACTOR, change.HOST_MEMORY_FACTOR):
        found = _fact_reason(evidence, quantity, MEMORY_GREW, "memory grew {v} over the log and still rises")
        if found:
            return found
    return None


def _bad_loss(evidence: Evidence) -> Reason | None:
    return _fact_reason(evidence, run.NAN_STEPS, 0.0, "the loss is NaN or inf in {v} logged steps")


def _accuracy(evidence: Evidence) -> Reason | None:
    a, b = now(evidence, stated.ACCURACY), before(evidence, stated.ACCURACY)
    if a and b and b.number - a.number > LOST_ACCURACY:
        return Reason.of(f"accuracy fell from {b} to {a}", a, b)
    return None


def _collapse(evidence: Evidence) -> Reason | None:
    load = ratio(evidence, stated.QPS)
    ttft, rate = ratio(evidence, stated.TTFT), ratio(evidence, stated.USER_RATE)
    if load and load > 1 and ((ttft or 0) > COLLAPSED or (rate or 1) < 1 / COLLAPSED):
        facts = [f for q in (stated.QPS, stated.TTFT, stated.USER_RATE) if (f := now(evidence, q))]
        return Reason.of(f"{load:.0f}x the load, {ttft or 0:.0f}x the time to first token", *facts)
    return None


def _cliff(evidence: Evidence) -> Reason | None:
    for series in evidence.series(stated.ALLREDUCE_TIME):
        if len(series.x) >= 3 and series.values[-1] > 2 * series.values[-2]:
            text = f"the all-reduce takes {show(series.values[-1], Unit.SECOND)} at {series.x[-1]:.0f} GPUs, "
            return Reason(f"{text}{show(series.values[-2], Unit.SECOND)} at {series.x[-2]:.0f}", (series.source,))
    return None


def _bubble(evidence: Evidence) -> Reason | None:
    bubble, expected = evidence.get(stated.BUBBLE), evidence.get(stated.BUBBLE_EXPECTED)
    if bubble and (expected is None or bubble.number > expected.number * WORSE):
        tail = f", {expected} was expected" if expected else ""
        return Reason.of(f"pipeline stages idle {bubble} of the step{tail}", bubble)
    return None


def _kernel(evidence: Evidence) -> Reason | None:
    own, library = now(evidence, run.FLOP_RATE), evidence.get(stated.LIBRARY_FLOP_RATE)
    if own and library and own.number < library.number / WORSE:
        return Reason.of(f"{own} where the library reaches {library}", own, library)
    return None


def _custom(evidence: Evidence) -> Reason | None:
    speed = evidence.get(stated.CUSTOM_SPEEDUP)
    if speed and speed.number < 1.0:
        return Reason.of(f"the custom kernel runs at {speed} of the library path", speed)
    return None


def _loader(evidence: Evidence) -> Reason | None:
    data, step = now(evidence, run.DATA_TIME), now(evidence, run.STEP_TIME)
    if data and step and data.number > LOADING * step.number:
        return Reason.of(f"a step of {step} waits {data} for its batch", data, step)
    return _fact_reason(evidence, run.DATA_SHARE, LOADING, "{v} of wall time goes to fetching batches")


def _slow_host(evidence: Evidence) -> Reason | None:
    return (
        _loader(evidence)
        or _blocked(evidence)
        or _fact_reason(evidence, run.HOST_UNEXPLAINED_SHARE, 0.3, "{v} of wall time is not accounted for")
        or _fact_reason(evidence, run.GRAPH_BREAKS, 4, "torch.compile breaks the graph {v} times")
        or _fact_reason(evidence, run.RECOMPILE_LIMIT_HIT, 0, "{v} functions hit the recompile limit")
        or _fact_reason(evidence, run.RECOMPILES, 3, "torch.compile recompiled {v} times")
    )


def _blocked(evidence: Evidence) -> Reason | None:
    if evidence.value(run.DEVICE_SHARE, 0.0) > DEVICE_BOUND:
        return None
    share = _fact_reason(evidence, run.SYNC_SHARE, 0.05, "{v} of host time is spent in synchronisation")
    if share:
        return share
    sync, step = evidence.get(run.SYNC_TIME), now(evidence, run.STEP_TIME)
    if sync and step and sync.number > 0.1 * step.number:
        return Reason.of(f"a step of {step} blocks {sync} in synchronisation", sync, step)
    return None


def _slow_start(evidence: Evidence) -> Reason | None:
    if not evidence.value(change.FIRST_STEPS_EXCESS, 0.0) > LONG_BOOT_S:
        return None
    return _fact_reason(evidence, change.FIRST_STEPS_RATIO, SLOW_BOOT, "the first steps take {v} the steady one")


def _drift(evidence: Evidence) -> Reason | None:
    return _fact_reason(evidence, change.DRIFT_RATIO, WORSE, "steps grew {v} slower over the log")


def _out_of_memory(evidence: Evidence) -> Reason | None:
    fact = evidence.get(memory.FAILED)
    return None if fact is None else Reason.of("an allocation on the GPU failed", fact)


def _mfu_is_low(evidence: Evidence) -> Reason | None:
    """Somebody who states an MFU and nothing else asks whether it is good."""
    fact = now(evidence, run.MFU)
    if fact is None or not fact.stated or before(evidence, run.MFU) or fact.number >= LOW_MFU:
        return None
    return Reason.of(f"MFU of {fact}: published dense runs reach 35% to 50%", fact)


_DETECTORS: tuple[tuple[Symptom, Callable[[Evidence], Reason | None]], ...] = (
    (Symptom.SLOW_STEP, _mfu_is_low),
    (Symptom.OUT_OF_MEMORY, _out_of_memory),
    (Symptom.BAD_LOSS, _bad_loss),
    (Symptom.ACCURACY_DROP, _accuracy),
    (Symptom.SERVING_COLLAPSE, _collapse),
    (Symptom.SLOW_COLLECTIVE, _cliff),
    (Symptom.PIPELINE_IDLE, _bubble),
    (Symptom.CUSTOM_KERNEL_SLOWER, _custom),
    (Symptom.SLOW_KERNEL, _kernel),
    (Symptom.SUDDEN_SLOWDOWN, _fell),
    (Symptom.GRADUAL_SLOWDOWN, _drift),
    (Symptom.PERIODIC_STALL, _stalls),
    (Symptom.MEMORY_GROWTH, _grows),
    (Symptom.LOW_GPU_UTILISATION, _idle),
    (Symptom.SLOW_STEP, _slow_host),
    (Symptom.SLOW_START, _slow_start),
)
