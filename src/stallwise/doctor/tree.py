"""The first four questions of a slow run, each answered from the evidence or asked aloud, and where the answer leads."""

from __future__ import annotations

from stallwise.doctor.findings.diagnosis import OPEN
from stallwise.doctor.findings.symptom import Symptom
from stallwise.doctor.symptoms import Complaint
from stallwise.evidence.catalog import change, distributed, fabric, run, serving, stated
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category, Ledger
from stallwise.evidence.quantity import Quantity

TRAINING = {
    Symptom.SLOW_STEP,
    Symptom.SUDDEN_SLOWDOWN,
    Symptom.GRADUAL_SLOWDOWN,
    Symptom.PERIODIC_STALL,
    Symptom.LOW_GPU_UTILISATION,
    Symptom.SLOW_SCALING,
    Symptom.SLOW_COLLECTIVE,
    Symptom.PIPELINE_IDLE,
}
SERVING = {Symptom.SERVING_COLLAPSE, Symptom.SERVING_SLOW, Symptom.HIGH_TTFT}
BURSTY_SHARE = 0.05  # of all time in isolated slow steps


def narrate(evidence: Evidence, stated_complaints: tuple[Complaint, ...], ledger: Ledger | None) -> tuple[str, ...]:
    """One line a question; nothing where no run is slow."""
    symptoms = {c.symptom for c in stated_complaints}
    if symptoms & SERVING:
        return (_load(evidence), _phase(evidence), _cache(evidence))
    if symptoms & TRAINING or ledger is not None:
        first = _scaling(evidence) if Symptom.SLOW_SCALING in symptoms else ()
        first += _device(evidence) if Symptom.LOW_GPU_UTILISATION in symptoms and ledger is None else ()
        return (*first, _stable(evidence), _local(evidence), _where(evidence, ledger), _memory_change(evidence))
    return ()


def _scaling(evidence: Evidence) -> tuple[str, ...]:
    """What a speed-up on so many GPUs says, by the formula that `plan formula scaling-efficiency` works out."""
    gpus, speed = evidence.get(stated.GPUS), evidence.get(run.BENCH_SPEEDUP)
    if gpus is None or speed is None or not gpus.number > 1.0 or not 0.0 < speed.number < gpus.number:
        return ()
    from stallwise.physics.costs.formulas import scaling_efficiency

    worth = scaling_efficiency.evaluate(int(gpus.number), speed.number)
    return (
        f"How much is lost? {speed} on {gpus} GPUs is {worth['efficiency_share']:.0%} efficiency: {worth['exposed_share']:.0%} of "
        f"each step is not divided; half of that gone gives {worth['half_removed_ratio']:.1f}x.",
    )


def _device(evidence: Evidence) -> tuple[str, ...]:
    return (
        "The right device? Compare CUDA_VISIBLE_DEVICES with the processes that nvidia-smi lists for this GPU: "
        "the job may run on another device.",
    )


def _flag(evidence: Evidence, quantity: Quantity) -> bool | None:
    fact = evidence.get(quantity)
    return None if fact is None else bool(fact.number)


def _stable(evidence: Evidence) -> str:
    question = "Stable or bursty? "
    drop, drift = evidence.get(change.DROP_RATIO), evidence.get(change.DRIFT_RATIO)
    count, share = evidence.get(change.STALL_COUNT), evidence.value(change.STALL_SHARE, 0.0)
    bursty = _flag(evidence, stated.BURSTY)
    if drop is not None:
        step = evidence.get(change.DROP_STEP)
        return f"{question}Stable on two levels: {drop} slower from step {step} on. What happened there?"
    if drift is not None:
        return f"{question}Neither: it drifts, {drift} from start to end. Something grows."
    if bursty or (count is not None and count.number >= 3 and share > BURSTY_SHARE):
        period = evidence.get(change.STALL_PERIOD)
        tail = f" about every {period} steps" if period else ""
        return f"{question}Bursty{tail}: input, storage, checkpoints, collection or a noisy neighbour."
    if bursty is False or evidence.get(change.STEPS_LOGGED) or evidence.get(stated.STEADY_FOR):
        return f"{question}Stable: every step pays, so look inside one step."
    return f"{question}{OPEN} ask for the step times (python train.py 2>&1 | tee train.log)."


def _local(evidence: Evidence) -> str:
    question = "One rank or all? "
    local = _flag(evidence, stated.RANK_LOCAL)
    if local is None:
        local = _flag(evidence, stated.STRAGGLERS)
    slow, ratio = evidence.get(stated.SLOW_NODE), evidence.get(stated.SLOW_RANK_RATIO)
    late = evidence.get(distributed.STRAGGLER)
    if late is not None:
        return f"{question}One: {late} arrives late, and the rest wait for it."
    if slow is not None or local:
        name = f" {slow}" if slow else ""
        tail = f" ({ratio} its peers)" if ratio else ""
        return f"{question}One{name}{tail}: hardware, data or placement of that rank; the rest only wait."
    if local is False:
        return f"{question}All alike: no straggler, so the cause is shared: code, fabric, storage or schedule."
    if not _several(evidence):
        return f"{question}{OPEN} one GPU, nothing to compare with."
    return f"{question}{OPEN} ask for per-rank times of the same steps."


def _several(evidence: Evidence) -> bool:
    """Whether more than one GPU is spoken of, by their number or by how the work is split."""
    counts = (stated.GPUS, fabric.TP_SIZE, stated.PP, stated.DP)
    return any(evidence.value(q, 1.0) > 1.0 for q in counts) or len(list(evidence.scopes("rank"))) > 1


def _where(evidence: Evidence, ledger: Ledger | None) -> str:
    question = "Before backward or in gradient sync? "
    if ledger is not None:
        sync = ledger.share(Category.COMMUNICATION)
        front = ledger.share(Category.INPUT_WAIT) + ledger.share(Category.HOST_WAIT) + ledger.share(Category.LAUNCH_GAP)
        place = "in the exchange" if sync > front else "on the host's side, before the device has work"
        return f"{question}{sync:.0%} exposed communication against {front:.0%} waiting for the host: {place}."
    if (in_sync := _flag(evidence, stated.IN_GRADIENT_SYNC)) is not None:
        return f"{question}{'In the exchange' if in_sync else 'Not in the exchange'}, as stated."
    if (host := _flag(evidence, stated.GPU_BUSY_UNCHANGED)) is not None:
        return question + (
            "The GPU works no longer than before: host side." if host else "The GPU itself works longer."
        )
    data, step = evidence.get(run.DATA_TIME), evidence.get(run.STEP_TIME)
    if data and step and data.number > 0.1 * step.number:
        return f"{question}Before forward: {data} of {step} wait for the batch."
    return f"{question}{OPEN} a trace of a few steps shows it (stallwise record -- python train.py)."


def _memory_change(evidence: Evidence) -> str:
    question = "After a memory-saving change? "
    answer = _flag(evidence, stated.AFTER_MEMORY_SAVING)
    changed = evidence.text(stated.CHANGED).lower()
    if answer is None and changed:
        answer = any(word in changed for word in ("checkpointing", "recompute", "offload", "fsdp", "zero", "shard"))
    if answer:
        return f"{question}Yes: it trades time for memory; price the recompute and the extra traffic first."
    if answer is False:
        if changed.startswith(("nothing", "none", "no ")):
            return f"{question}No: nothing changed, as you say, so suspect the machines."
        return f"{question}No: what changed is {changed}." if changed else f"{question}No."
    return f"{question}{OPEN} what changed between the good and the bad run?"


def _load(evidence: Evidence) -> str:
    a, b = evidence.get(serving.OFFERED_RATE), evidence.get(serving.OFFERED_RATE, run="before")
    if a and b and a is not b:
        return f"Load or speed? {b} was fine, {a} is not: the engine is past its knee, not slow as such."
    return f"Load or speed? {OPEN} sweep the request rate and watch where the first token time bends."


def _phase(evidence: Evidence) -> str:
    ttft, rate = evidence.get(serving.TTFT), evidence.get(serving.PER_REQUEST_RATE)
    if ttft and rate:
        return (
            f"First token or later ones? Both: {ttft} to the first and {rate} after it, so prefill and decode collide."
        )
    if ttft:
        return f"First token or later ones? The first ({ttft}): queue or prefill."
    return f"First token or later ones? {OPEN} a benchmark that reports both tells."


def _cache(evidence: Evidence) -> str:
    use = evidence.get(serving.KV_MAX)
    if use is None:
        return f"Is the KV cache full? {OPEN} scrape the engine's metrics under load."
    full = (
        "Nearly full: requests are preempted or held back" if use.number > 0.9 else "No: memory does not hold it back"
    )
    return f"Is the KV cache full? {full} ({use} in use)."
