"""From stated numbers to memory: KV budgets and decode rates in serving, per-rank peaks in training."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from math import isfinite

from stallwise.doctor.measures._stated_model import card_of, dtype_of, shape_of
from stallwise.doctor.measures.expectations import ARITHMETIC
from stallwise.evidence.catalog import expected, fabric, serving, stated
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Scope
from stallwise.evidence.quantity import Quantity
from stallwise.physics.costs.envelope import (
    decode_iteration_s,
    kv_budget_bytes,
    layer_activation_bytes,
    score_bytes,
    score_matrix_bytes,
    speculative_gain,
    state_bytes,
)
from stallwise.physics.costs.grid import grid_of, recipe_of
from stallwise.physics.costs.memory import Memory, memory
from stallwise.physics.specs.hardware import Gpu, find_gpu
from stallwise.physics.specs.layout import Layout
from stallwise.physics.specs.model import Model
from stallwise.physics.specs.workload import Workload
from stallwise.units import Unit

ORDER = -4
BYTES = {"fp8": 1.0, "int8": 1.0, "fp4": 0.5, "fp32": 4.0}
DEFAULT_PROMPT, DEFAULT_OUTPUT = 2048.0, 512.0  # tokens of a chat request where nobody says
SEEN_PART = 0.01  # of the peak: smaller parts are told together
DEFAULT_SEQUENCE = 8192.0
LONGEST, TOKEN_GRID = 1 << 20, 128  # tokens: no layout is asked for more, and nobody plans finer
GIB = 1 << 30
USUAL_CARD = "h100"  # 80 GB, where nobody names one
MOST = 1e9  # ranks or tokens: beyond it no layout and no sequence
DRAFTED, ACCEPTED = 4, 0.7  # a usual draft length and the acceptance EAGLE-like drafters report on chat
E4M3_MAX, E5M2_MAX = 448.0, 57344.0  # OCP FP8 specification


def _fact(quantity: Quantity, value: float, note: str = "", scope: Scope | None = None) -> Fact:
    whole = quantity.unit in (Unit.COUNT, Unit.TOKEN)  # nobody serves half a request
    return Fact(quantity, round(value) if whole and isfinite(value) else value, ARITHMETIC, scope or Scope(), note=note)


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Nothing where nothing was stated, or where what was stated is beyond any number."""
    yield from (
        x for x in _known(evidence) if not isinstance(x, Fact) or isinstance(x.value, str) or isfinite(x.number)
    )


def _known(evidence: Evidence) -> Iterator[Item]:
    model, card = shape_of(evidence), card_of(evidence)
    if model is not None and card is not None and _serves(evidence):
        yield from _serving(evidence, model, card)
    for when in (None, "before"):
        yield from _scores(evidence, model, when)
    if model is not None and evidence.get(fabric.TP_SIZE) and evidence.get(stated.DP):
        yield from _training(evidence, model, None)
        if evidence.get(fabric.TP_SIZE, run="before"):
            yield from _training(evidence, model, "before")
    yield from _numbers(evidence)


def _serving(evidence: Evidence, model: Model, card: Gpu) -> Iterator[Item]:
    # A layout says how many cards there are at least, where nobody counts them.
    gpus = max(evidence.value(stated.GPUS, 1.0), evidence.value(fabric.TP_SIZE, 1.0) * evidence.value(stated.PP, 1.0))
    dtype = dtype_of(evidence)
    weights = model.parameters().total * BYTES.get(dtype, 2.0)
    per_token = model.kv_bytes_per_token("bf16")
    prompt = evidence.value(serving.PROMPT_TOKENS, DEFAULT_PROMPT)
    output = evidence.value(serving.OUTPUT_TOKENS, DEFAULT_OUTPUT)
    context = prompt + output / 2
    budget = kv_budget_bytes(gpus * card.memory_bytes, weights)
    bandwidth = gpus * card.achieved_byte_per_s
    yield _fact(expected.WEIGHT_BYTES, weights)
    yield _fact(expected.KV_BYTES_PER_TOKEN, per_token)
    yield _fact(expected.KV_BUDGET, budget)
    yield _fact(expected.KV_BUDGET_TOKENS, budget / per_token)
    yield _fact(
        expected.KV_SEQUENCES, budget / per_token / (prompt + output), note=f"{prompt + output:.0f} tokens each"
    )
    yield _fact(expected.DECODE_FLOOR, decode_iteration_s(weights, 0.0, bandwidth))
    rate, ttft, qps = (evidence.value(q) for q in (serving.PER_REQUEST_RATE, serving.TTFT, serving.OFFERED_RATE))
    if rate > 0 and qps > 0:
        inside = qps * ((ttft if ttft == ttft else 0.0) + output / rate)
        yield _fact(expected.CONCURRENCY, inside, note=f"{output:.0f} tokens an answer")
        yield _fact(expected.DECODE_ITERATION, decode_iteration_s(weights, inside * context * per_token, bandwidth))
    prefill_s = 2.0 * model.parameters().active * prompt / (gpus * card.achieved_flop_per_s(dtype))
    yield _fact(expected.PREFILL_TIME, prefill_s, note=f"{prompt:.0f} tokens")
    if qps > 0:
        yield _fact(expected.PREFILL_LOAD, min(qps * prefill_s, 1.0))
    yield _fact(expected.SPECULATIVE_GAIN, speculative_gain(ACCEPTED, DRAFTED))


def _scores(evidence: Evidence, model: Model | None, when: str | None) -> Iterator[Item]:
    """Heads of a rank, and one score matrix of theirs: all that it takes is the heads, the sequence and the degree."""
    tp = evidence.value(fabric.TP_SIZE, run=when) if when else _now(evidence, fabric.TP_SIZE)
    heads = float(model.heads) if model is not None else evidence.value(stated.HEADS)
    if not (1 <= tp <= MOST and 1 <= heads <= MOST):
        return
    scope = Scope(run=when) if when else Scope()
    yield _fact(expected.HEADS_EACH, heads / tp, scope=scope, note=f"{heads:.0f}")
    sequence, microbatch = evidence.value(stated.SEQUENCE, DEFAULT_SEQUENCE), evidence.value(stated.MICROBATCH, 1.0)
    if 1 <= sequence <= MOST and 1 <= microbatch <= MOST:
        each = score_matrix_bytes(sequence, microbatch, int(heads), tp)
        yield _fact(expected.SCORES_EACH, each, scope=scope, note=f"{sequence:.0f} tokens, microbatch {microbatch:.0f}")


def _training(evidence: Evidence, model: Model, when: str | None) -> Iterator[Item]:
    scope = Scope(run=when) if when else Scope()
    tp = evidence.value(fabric.TP_SIZE, run=when) if when else _now(evidence, fabric.TP_SIZE)
    dp = evidence.value(stated.DP, run=when) if when else _now(evidence, stated.DP)
    pp = evidence.value(stated.PP, 1.0)
    sequence = evidence.value(stated.SEQUENCE, DEFAULT_SEQUENCE)
    microbatch = evidence.value(stated.MICROBATCH, 1.0)
    parallel = bool(evidence.value(stated.SEQUENCE_PARALLEL, 0.0))
    counts = (tp, pp, dp, sequence, microbatch)
    if any(n == n and not 1 <= n <= MOST for n in counts):
        return  # no layout has fewer, and none so many
    yield _fact(expected.STATE_BYTES, state_bytes(model.parameters().total, tp * dp * pp), scope=scope)
    yield _fact(expected.GATHERED_LAYER, 2 * 2.0 * model.layer_params() / tp, scope=scope, note="two layers, prefetch")
    activations = layer_activation_bytes(sequence, microbatch, model.hidden, tp, parallel)
    yield _fact(expected.LAYER_ACTIVATIONS, activations, scope=scope, note=f"{sequence:.0f} tokens")
    yield _fact(expected.LAYER_SCORES, score_bytes(sequence, microbatch, model.heads, tp), scope=scope)
    if all(n == n for n in counts):
        layout = _layout(evidence, int(tp), int(pp), int(dp), int(microbatch), parallel)
        found = _peak(model, layout, int(sequence))
        peak = float(found.device[0])
        yield _fact(expected.DEVICE_PEAK, peak, scope=scope, note=f"{sequence:.0f} tokens, microbatch {microbatch:.0f}")
        for part, sizes in found.parts().items():
            if sizes[0] >= SEEN_PART * peak:
                yield _fact(expected.DEVICE_PART, float(sizes[0]), scope=replace(scope, layer=part))
        small = sum(float(x[0]) for x in found.parts().values() if x[0] < SEEN_PART * peak)
        yield _fact(expected.DEVICE_PART, small, scope=replace(scope, layer="the rest"))
        if tp > 1 and not parallel:
            split = _peak(model, replace(layout, sequence_parallel=True), int(sequence))
            yield _fact(expected.SPLIT_FREES, peak - float(split.device[0]), scope=scope)
        written = _peak(model, replace(layout, attention="unfused"), int(sequence))
        yield _fact(expected.FUSED_FREES, float(written.device[0]) - peak, scope=scope)
        card = card_of(evidence)
        if card is not None and when is None:
            yield _fact(expected.CARD_MEMORY, float(card.memory_bytes))
        if evidence.get(fabric.TP_SIZE, run="before"):
            yield from _longest(model, layout, card or find_gpu(USUAL_CARD), scope)
    inputs = 2.0 * sequence * microbatch * model.hidden * model.layers / pp / (tp if parallel else 1.0)
    yield _fact(expected.LAYER_INPUTS, inputs, scope=scope)


def _longest(model: Model, layout: Layout, card: Gpu | None, scope: Scope) -> Iterator[Item]:
    """Up to how many tokens a layout fits, with fused attention and with scores written out."""
    if card is None:
        return
    for attention in ("fused", "unfused"):
        fits = replace(layout, attention=attention if attention == "unfused" else "", micro_batch=1)
        low, high = 0, LONGEST // TOKEN_GRID
        while low < high:
            middle = (low + high + 1) // 2
            if float(_peak(model, fits, middle * TOKEN_GRID).device[0]) <= card.memory_bytes:
                low = middle
            else:
                high = middle - 1
        tokens = low * TOKEN_GRID
        yield _fact(
            expected.LONGEST_FIT,
            tokens,
            scope=replace(scope, layer=attention),
            note=f"{card.memory_bytes / GIB:.0f} GiB",
        )


def _layout(evidence: Evidence, tp: int, pp: int, dp: int, microbatch: int, parallel: bool) -> Layout:
    """The stated layout; what is not stated is as `plan memory` has it."""
    words = evidence.text(stated.SHARDING).lower()
    zero = 3 if re.search(r"fsdp|zero-?3", words) else 2 if re.search(r"zero-?2", words) else 1
    return Layout(
        tp=tp, pp=pp, dp=dp, zero=zero, micro_batch=microbatch, sequence_parallel=parallel,
        recompute="full" if "full" in evidence.text(stated.RECOMPUTE).lower() else "none",
        style="fsdp" if zero == 3 else "megatron",
    )  # fmt: skip


def _peak(model: Model, layout: Layout, sequence: int) -> Memory:
    workload = Workload(sequence, layout.dp * layout.micro_batch * 4 * layout.pp)
    return memory(model, grid_of([layout], workload), workload, recipe_of(layout))


def _now(evidence: Evidence, quantity: Quantity) -> float:
    return next((f.number for f in evidence.all(quantity) if f.scope.run is None), float("nan"))


def _numbers(evidence: Evidence) -> Iterator[Item]:
    form = evidence.text(stated.FORMAT).lower()
    if "e4m3" in form or "fp8" in form:
        yield _fact(expected.FP8_MAX, E5M2_MAX if "e5m2" in form else E4M3_MAX)
    seen, calibrated = evidence.value(stated.OBSERVED_MAX), evidence.value(stated.CALIBRATED_MAX)
    if seen > 0 and calibrated > 0:
        yield _fact(expected.CLIP_RATIO, seen / calibrated)


def _serves(evidence: Evidence) -> bool:
    """True when anything stated is about serving."""
    return any(
        evidence.get(q)
        for q in (serving.OFFERED_RATE, serving.ENGINE, serving.PER_REQUEST_RATE, serving.TPOT, serving.TTFT)
    )
