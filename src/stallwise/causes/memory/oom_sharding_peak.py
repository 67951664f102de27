"""A sharded run needs more at its peak than its states: a gathered layer, and activations a GPU.

## What it means
FSDP and ZeRO-3 keep a part of each weight, but gather a whole layer (or several, with prefetch) while it runs. When a layout
trades tensor parallelism for data parallelism, activations a GPU grow although the states do not.

## Why it costs
The states fit on paper and the run still dies when a layer is gathered or in the first forward pass.

## What else looks so
Optimizer states do not grow with such a change. Fragmentation shows as unused reserve.

## Fix
Wrap smaller units, limit prefetch (`limit_all_gathers`), reshard after forward, keep sequence parallelism, recompute.

## How the gain is found
Largest wrapped unit x (1 + prefetch) for the gather; activations x (old TP / new TP) for the layout.
"""

from __future__ import annotations

from dataclasses import replace

from stallwise.doctor.findings.clue import Clue, yes
from stallwise.doctor.findings.failure import Failure
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import MEMORY_SNAPSHOT, MEMORY_SUMMARY, STEP_SHAPE
from stallwise.evidence.catalog import expected, fabric, stated
from stallwise.evidence.catalog import memory as m
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit, show

STATED = 0.75  # of two layouts by statement: attention scores may be the larger part of the same peak
SHORT = ("oom", "memory")  # affirmed words of a failed allocation


def _sharded(evidence: Evidence) -> bool:
    return evidence.text(stated.SHARDING).lower() not in ("", "none", "no", "0")


@rule()
def oom_sharding_peak(evidence: Evidence) -> Finding | None:
    """Judges the failed allocation, or two stated layouts of which only that with more tensor parallelism fits."""
    return (_at_gather(evidence) if evidence.all(m.FAILED) else None) or _in_layouts(evidence)


def _in_layouts(evidence: Evidence) -> Finding | None:
    """Tensor parallelism shrank, the ranks that share the states did not, and memory ran out."""
    shared = same_ranks(evidence)
    failed = evidence.value(m.FAILED, 0.0) > 0 or any(word in evidence.stems for word in SHORT)
    if not failed or not tp_shrank(evidence) or shared is False or evidence.value(stated.OOM_IN_OPTIMIZER, 0.0):
        return None
    facts = [f for q in (fabric.TP_SIZE, stated.DP) for f in evidence.all(q)]
    seen = Reason.of("it fits with more tensor parallelism and not with less", *facts)
    found = advise(evidence)
    return replace(found, confidence=STATED, because=(seen, *found.because), blocking=True)


def _at_gather(evidence: Evidence) -> Finding | None:
    f = Failure(evidence)
    if f.phase != "gather" or f.fragmented or f.foreign or f.absurd:
        return None
    return Finding(
        headline=f"gathering a sharded layer does not fit: {f.show(m.REQUEST)} asked",
        confidence=0.8,
        because=(f.sizes(), *f.place()),
        fixes=(
            Fix("wrap smaller units and limit prefetch", worth="one gathered unit less", cost="exposed collectives"),
            Fix("reshard after forward", worth="units gathered together", cost="a second gather in backward"),
            *f.plan("recompute")[:1],
        ),
        avoid="Do not shard the optimizer further: the peak is the gathered layer and its activations.",
        blocking=True,
    )


# A peak that grows when tensor parallelism shrinks, while only suspected.


def _both(evidence: Evidence, quantity: Quantity) -> tuple[Fact | None, Fact | None]:
    now = next((f for f in evidence.all(quantity) if f.scope.run is None), None)
    return now, evidence.get(quantity, run="before")


def tp_shrank(evidence: Evidence) -> bool | None:
    """Whether the failing layout has less tensor parallelism than the one that fits."""
    now, then = _both(evidence, fabric.TP_SIZE)
    return None if now is None or then is None else now.number < then.number


def same_ranks(evidence: Evidence) -> bool | None:
    """Whether at least as many ranks share the states."""
    (tp, tp_then), (dp, dp_then) = _both(evidence, fabric.TP_SIZE), _both(evidence, stated.DP)
    if not (tp and tp_then and dp and dp_then):
        return None
    return tp.number * dp.number >= tp_then.number * dp_then.number


CLUES = (
    Clue((m.PHASE,), lambda e: e.text(m.PHASE) == "gather", "strong", "it failed while gathering a sharded layer"),
    Clue((stated.SHARDING,), _sharded, "hint", "states are sharded"),
    Clue((fabric.TP_SIZE,), tp_shrank, "strong, needed", "it fits with more tensor parallelism and not with less", "tensor parallelism did not shrink"),
    Clue((fabric.TP_SIZE, stated.DP), same_ranks, "hint when seen", "the number of ranks that share the states did not fall", "fewer ranks share the states"),
    yes(stated.OOM_IN_ATTENTION, "fair", "the failing allocation is in a layer's own activations", "the failing allocation is elsewhere"),
    yes(stated.OOM_IN_OPTIMIZER, "forbids", "it fails in the optimizer step", "it does not fail in the optimizer"),
)  # fmt: skip


def _line(evidence: Evidence, quantity: Quantity, name: str) -> str:
    now, then = _both(evidence, quantity)
    return f"{name} {then} -> {now}" if now and then else f"{name} {now}" if now else ""


def _summed(evidence: Evidence) -> list[Reason]:
    """All parts of the fullest GPU as `plan memory` counts them, their sum, and what the card still has: nothing is left out."""
    now, then = _both(evidence, expected.DEVICE_PEAK)
    if now is None:
        return []
    found = []
    for peak, run in ((then, "before"), (now, None)):
        parts = [f for f in evidence.all(expected.DEVICE_PART) if f.scope.run == run]
        if peak is not None and parts:
            tp = next((f for f in evidence.all(fabric.TP_SIZE) if f.scope.run == run), None)
            text = " + ".join(f"{f.scope.layer} {f}" for f in parts)
            found.append(Reason(f"the fullest GPU{f' at TP {tp}' if tp else ''}: {text} = {peak} ({peak.note})"))
    card, fused = evidence.get(expected.CARD_MEMORY), _both(evidence, expected.FUSED_FREES)[0]
    if card and fused:
        left = card.number - now.number
        written = now.number + fused.number
        text = f"held against the card: {now} of {card}"
        if left > 0:
            text += f", so {show(left, Unit.BYTE)} would be left and the failure is unexplained"
            text += f", unless attention writes its scores: {show(written, Unit.BYTE)} " + (
                "do not fit" if written > card.number else "fit as well, so only a snapshot tells"
            )
        found.append(Reason(text))
    return found


def _smaller(evidence: Evidence) -> tuple[Fix, ...]:
    """A micro-batch of one cannot be halved: then the sequence is split."""
    size = evidence.get(stated.MICROBATCH)
    if size is not None and size.number <= 1:
        return (Fix("Context parallelism: split the sequence, the micro-batch is 1 already", worth="divides every activation above by its degree",
                    cost="K and V pass around a ring", risk="framework support"),)  # fmt: skip
    above = "" if size else ", where it is above 1"
    return (Fix(f"Smaller micro-batch with more accumulation{above}", worth="halves every activation above", cost="smaller GEMMs, longer pipeline of micro-batches",
                risk="lower MFU under the GEMM knee"),)  # fmt: skip


def _breaking(evidence: Evidence) -> list[Reason]:
    """The lengths at which the smaller TP fails and the larger does not, fused and with scores written."""
    found = []
    tp, tp_then = _both(evidence, fabric.TP_SIZE)
    now: dict[str | None, Fact] = {}
    then: dict[str | None, Fact] = {}
    for fact in evidence.all(expected.LONGEST_FIT):
        (now if fact.scope.run is None else then)[fact.scope.layer] = fact
    for attention, words in (("fused", "with FlashAttention"), ("unfused", "with scores written out")):
        small, large = now.get(attention), then.get(attention)
        if small and large and tp and tp_then and small.number < large.number:
            found.append(Reason(
                f"{words} TP {tp} fits {small.note} up to {small} tokens x micro-batch and TP {tp_then} up to {large}: "
                "between the two only the smaller TP fails"))  # fmt: skip
    (peak, peak_then), card = _both(evidence, expected.DEVICE_PEAK), now.get("fused")
    if found and card and peak and peak_then and not evidence.get(stated.SEQUENCE):
        found.insert(0, Reason(
            f"nobody states sequence and micro-batch: {peak.note} is assumed, at which fused attention takes {peak_then} and {peak} "
            f"of {card.note}; ask for both"))  # fmt: skip
    return found


def advise(evidence: Evidence) -> Finding:
    """The arithmetic by layout, then sequence parallelism, fused attention, a smaller micro-batch, and TP back."""
    tp, tp_then = _both(evidence, fabric.TP_SIZE)
    dp, dp_then = _both(evidence, stated.DP)
    states, gathered, layer, scores = (
        _line(evidence, q, n) for q, n in (
            (expected.STATE_BYTES, "states a rank:"), (expected.GATHERED_LAYER, "gathered layers:"),
            (expected.LAYER_ACTIVATIONS, "one layer's activations:"), (expected.LAYER_SCORES, "its scores, if written:"),
        )
    )  # fmt: skip
    because = [Reason(text) for text in (states, gathered, layer, scores) if text]
    from stallwise.causes.memory._scores_by_layout import scores_by_layout

    because += [*scores_by_layout(evidence), *_summed(evidence), *_breaking(evidence)]
    if tp and tp_then and dp and dp_then and tp.number * dp.number == tp_then.number * dp_then.number:
        because.insert(0, Reason(
            f"TP x DP is {tp.number * dp.number:.0f} in both layouts, so optimizer shards do not change and are not the cause"))  # fmt: skip
    split, fused = (_both(evidence, q)[0] for q in (expected.SPLIT_FREES, expected.FUSED_FREES))
    return Finding(
        headline="Less tensor parallelism makes each layer's gathered weights and activations larger: the peak no longer fits.",
        confidence=0.0,
        because=tuple(because),
        summary="Checkpointing keeps only layer inputs, but recomputing one layer holds all of it at once, split by TP alone.",
        fixes=(
            Fix("Sequence parallelism: split norm, dropout and residual activations along the sequence",
                worth=f"frees {split} of the peak" if split else "divides what TP leaves whole by TP",
                cost="all-gather and reduce-scatter in place of all-reduce, same bytes", risk="none known"),
            Fix("FlashAttention, if scores are still written out", worth=f"frees {fused} of the peak" if fused else "removes the s x s scores",
                cost="none", risk="masks or biases it does not support"),
            *_smaller(evidence),
            Fix(f"Tensor parallelism back to {tp_then}" if tp_then else "More tensor parallelism", worth="the layout that fits", cost="more all-reduce traffic a layer",
                risk="only inside one NVLink domain"),
        ),
        avoid="More activation checkpointing: every layer is checkpointed already, and the peak is inside one recomputed layer.",
        next=(MEMORY_SNAPSHOT, MEMORY_SUMMARY, STEP_SHAPE),
    )  # fmt: skip
