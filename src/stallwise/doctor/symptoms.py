"""What is wrong, before asking why: symptoms read off stated facts, logs and metrics, or from the user's own words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from stallwise.doctor.findings.finding import Reason
from stallwise.doctor.findings.symptom import Symptom
from stallwise.doctor.measures.worse import more_work
from stallwise.doctor.words import asserted_in
from stallwise.evidence.catalog import change, hang, hardware, memory, numerics, quantities, run, serving, stated
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import STATED, Fact
from stallwise.evidence.quantity import Quantity
from stallwise.late import np
from stallwise.readers.text.phrases import symptom_in
from stallwise.units import Unit, show

LOW_MFU = 0.3  # 215 of 220 published BF16 training runs with an MFU lie above
WORSE = 1.1  # a before/after ratio below this is what runs do by themselves
COLLAPSED = 2.5  # latency that grew by more than this under load has left the linear regime
NEVER_RESTS = 0.9  # utilisation above this leaves nothing to win by filling gaps
IDLE_GPU = 0.6  # utilisation below this leaves a third of the card unused even by nvidia-smi's generous count
HELD_FOR_S = 3600.0  # start-up, compilation and an evaluation on the host take less
HELD_SHARE = 0.1  # of the card's memory: a context and its libraries alone hold a percent
LOST_ACCURACY = 0.02  # points of accuracy that FP8 papers report as noise
SLOW_BOOT = 3.0  # first steps over the steady one
LONG_BOOT_S = 60.0  # and what they must cost together: every run compiles and warms up for seconds
MEMORY_GREW = 1.15
STALLED = 0.01  # of all time in isolated slow steps; a save now and then costs less
LOADING = 0.15  # of a step spent waiting for its batch
DEVICE_BOUND = 0.92  # device time over host time above which a synchronisation only waits for queued work
MANY = 3  # slow steps that make a pattern
GOOD_SCALING = 0.8  # of linear; published data-parallel runs inside one node lie above
LATE_TOKEN_S = 2.0  # a first token later than this is a complaint by itself

YOU_SAY = "you say: "


@dataclass(frozen=True, slots=True)
class Complaint:
    """A symptom and why we believe it is there."""

    symptom: Symptom
    reason: Reason

    @property
    def by_person(self) -> bool:
        """True when somebody said so, in words or in numbers of their own; False when only an artifact shows it."""
        return any(source.file == STATED.file for source in self.reason.sources)

    @property
    def in_numbers(self) -> bool:
        """True when numbers show it, and not only what somebody says."""
        return not self.reason.text.startswith(YOU_SAY)


def complaints(evidence: Evidence) -> list[Complaint]:
    """Every symptom that the evidence shows or the user states, surest first."""
    found: dict[Symptom, Complaint] = {}
    for fact in evidence.all(stated.SYMPTOM):
        words = str(fact.value)  # given as a symptom it is one; a typed page may rule it out or ascribe it to others
        for symptom in _in_words(words if fact.source.file == STATED.file else asserted_in(words)):
            found.setdefault(symptom, Complaint(symptom, Reason.of(f"{YOU_SAY}{fact.value}", fact)))
    for symptom, detect in _DETECTORS:
        reason = detect(evidence)
        if reason is not None:
            found.setdefault(symptom, Complaint(symptom, reason))
    if not found:
        found = {c.symptom: c for c in _worse_than_before(evidence)}
    return list(found.values())


def _worse_than_before(evidence: Evidence) -> Iterator[Complaint]:
    """Any quantity that got worse complains of what the catalogue says; the one that got worst speaks."""
    worst = max(evidence.all(change.WORSE_RATIO), key=lambda f: f.number, default=None)
    if worst is None or worst.number < WORSE:
        return
    name = worst.scope.layer or ""
    quantity = quantities().get(name)
    if quantity is not None and quantity.symptom:
        a, b = now(evidence, quantity), before(evidence, quantity)
        text = f"{name.rpartition('.')[2].replace('_', ' ')} went from {b} to {a}"
        yield Complaint(Symptom[quantity.symptom], Reason.of(text, *(f for f in (a, b) if f is not None)))


def _in_words(text: str) -> Iterator[Symptom]:
    lowered = text.lower().replace("_", " ").replace("-", " ")
    exact = [s for s in Symptom if s.name.lower().replace("_", " ") == lowered or s.value == text.lower()]
    if exact:
        yield from exact
    elif name := symptom_in(text):
        yield Symptom[name]


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
    if evidence.all(serving.OFFERED_RATE) and before(evidence, serving.OFFERED_RATE):
        return None  # a server under two loads, not a run that changed
    for quantity in (run.MFU, run.TOKENS_PER_S, run.SAMPLES_PER_S, run.FLOP_RATE):
        change_of = ratio(evidence, quantity)
        if change_of is not None and change_of < 1 / WORSE:
            a, b = now(evidence, quantity), before(evidence, quantity)
            assert a and b
            return Reason.of(f"{quantity.name.split('.')[-1]} fell from {b} to {a}", a, b)
    grew = ratio(evidence, run.STEP_TIME)
    if grew is not None and grew > WORSE * more_work(evidence):
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

    smi = quantities().get("gpu.utilisation")
    facts = evidence.all(smi) if smi else []
    mean = sum(f.number for f in facts) / len(facts) if facts else 1.0
    timed = any(evidence.all(q) for q in (run.STEP_TIME, run.SAMPLES_PER_S, run.TOKENS_PER_S, run.LOSS))
    held = any(
        f.number >= HELD_SHARE * evidence.within(f.scope).value(hardware.GPU_MEMORY_TOTAL)
        for f in evidence.all(hardware.GPU_MEMORY_USED)
    )
    asked = held and bool(evidence.all(stated.SYMPTOM))  # somebody shows a card that is held and asks about it
    if facts and mean < IDLE_GPU and (timed or asked):  # an idle card without a job on it is no complaint
        who = evidence.all(stated.SYMPTOM) if asked else []
        return Reason.of(f"the GPU is busy {show(mean, Unit.SHARE)} of the time while the job runs", facts[0], *who)
    return _held_and_idle(evidence)


def _held_and_idle(evidence: Evidence) -> Reason | None:
    """A job that holds a card's memory for hours and hardly uses it wants something that it does not get."""
    for used in evidence.series(hardware.GPU_UTILISATION):
        held = [
            s for s in evidence.series(hardware.GPU_MEMORY_USED) if s.scope == used.scope and len(s.x) == len(used.x)
        ]
        total = evidence.within(used.scope).value(hardware.GPU_MEMORY_TOTAL)
        if used.over != "time_s" or not held or not len(used.x) or total != total:
            continue
        span, least = float(used.x[-1] - used.x[0]), float(np.nanmin(held[0].values))
        busy = float(np.nanmean(used.values))
        if span >= HELD_FOR_S and least >= HELD_SHARE * total and busy < IDLE_GPU:
            text = f"{show(least, Unit.BYTE)} of a card are held for {show(span, Unit.SECOND)}, and it is busy {busy:.0%} of that"
            return Reason(text, (used.source,))
    return None


def _grows(evidence: Evidence) -> Reason | None:
    for quantity in (change.GPU_MEMORY_FACTOR, change.HOST_MEMORY_FACTOR):
        found = _fact_reason(evidence, quantity, MEMORY_GREW, "memory grew {v} over the log and still rises")
        if found:
            return found
    return None


def _bad_loss(evidence: Evidence) -> Reason | None:
    return (
        _fact_reason(evidence, run.NAN_STEPS, 0.0, "the loss is NaN or inf in {v} logged steps")
        or _fact_reason(evidence, run.NAN_GRADIENTS, 0.0, "the gradient norm is NaN in the last {v} logged steps")
        or _fact_reason(
            evidence,
            numerics.LOSS_OVER_CHANCE,
            1.0,
            "the loss rises, and is {v} of what guessing every token alike costs",
        )
    )


def _accuracy(evidence: Evidence) -> Reason | None:
    a, b = now(evidence, stated.ACCURACY), before(evidence, stated.ACCURACY)
    if a and b and b.number - a.number > LOST_ACCURACY:
        return Reason.of(f"accuracy fell from {b} to {a}", a, b)
    return None


def _collapse(evidence: Evidence) -> Reason | None:
    load = ratio(evidence, serving.OFFERED_RATE)
    ttft, rate = ratio(evidence, serving.TTFT), ratio(evidence, serving.PER_REQUEST_RATE)
    if load and load > 1 and ((ttft or 0) > COLLAPSED or (rate or 1) < 1 / COLLAPSED):
        facts = [f for q in (serving.OFFERED_RATE, serving.TTFT, serving.PER_REQUEST_RATE) if (f := now(evidence, q))]
        return Reason.of(f"{load:.0f}x the load, {ttft or 0:.0f}x the time to first token", *facts)
    swept, slower = (
        evidence.get(serving.LOAD_GROWTH),
        evidence.get(serving.TTFT_GROWTH) or evidence.get(serving.TPOT_GROWTH),
    )
    if swept and slower and swept.number > 1 and slower.number > COLLAPSED * swept.number**0.5:
        return Reason.of(f"{swept} the load, {slower} the latency", swept, slower)
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
    return None if fact is None or not fact.number > 0 else Reason.of("an allocation on the GPU failed", fact)


def _scales_badly(evidence: Evidence) -> Reason | None:
    """More cards that give less than their share: a stated speed-up, or the efficiency of a series."""
    gpus, speed = evidence.get(stated.GPUS), evidence.get(run.BENCH_SPEEDUP)
    if gpus and speed and speed.stated and gpus.number > 1 and speed.number < GOOD_SCALING * gpus.number:
        return Reason.of(f"{gpus} GPUs are only {speed} as fast as one", gpus, speed)
    return None


def _late_first_token(evidence: Evidence) -> Reason | None:
    """A first token that people state takes longer than a conversation bears."""
    ttft = now(evidence, serving.TTFT)
    if ttft is None or not ttft.stated or ttft.number < LATE_TOKEN_S or before(evidence, serving.TTFT):
        return None
    return Reason.of(f"the first token takes {ttft}", ttft)


def _driver_error(evidence: Evidence) -> Reason | None:
    xid = evidence.get(hardware.GPU_XID)
    return Reason.of(f"the driver reports Xid {xid}", xid) if xid and xid.stated else None


def _hangs(evidence: Evidence) -> Reason | None:
    silence = evidence.get(hang.HANG_TIMEOUT)
    return Reason.of(f"a collective was given up after {silence}", silence) if silence and silence.stated else None


def _mfu_is_low(evidence: Evidence) -> Reason | None:
    """Somebody who states an MFU and nothing else asks whether it is good."""
    fact = now(evidence, run.MFU)
    if fact is None or not fact.stated or before(evidence, run.MFU) or fact.number >= LOW_MFU:
        return None
    return Reason.of(f"MFU of {fact}: published dense runs reach 35% to 50%", fact)


def _busy_but_slow(evidence: Evidence) -> Reason | None:
    """Somebody states a card that never rests and a small MFU."""
    busy, mfu = now(evidence, run.GPU_BUSY), now(evidence, run.MFU)
    if busy is None or mfu is None or not mfu.stated or busy.number < NEVER_RESTS or mfu.number >= LOW_MFU:
        return None
    return Reason.of(f"the GPU is busy {busy} of the time and gives an MFU of {mfu}", busy, mfu)


_DETECTORS: tuple[tuple[Symptom, Callable[[Evidence], Reason | None]], ...] = (
    (Symptom.BUSY_BUT_SLOW, _busy_but_slow),
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
    (Symptom.SLOW_SCALING, _scales_badly),
    (Symptom.HIGH_TTFT, _late_first_token),
    (Symptom.GPU_ERROR, _driver_error),
    (Symptom.HANG, _hangs),
)
