"""From stated numbers to what they imply about kernels, collectives, pipelines and throughput."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from stallwise.doctor.measures._stated_model import card_of, dtype_of, shape_of
from stallwise.evidence.catalog import expected, kernel, run, stated
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Scope, Source
from stallwise.evidence.quantity import Quantity
from stallwise.physics.costs.cliffs import explain_jump
from stallwise.physics.costs.envelope import (
    bubble_over_useful,
    bubble_share,
    of_the_step,
    ring_bytes_factor,
    slowest_over_mean,
)
from stallwise.units import Unit

ORDER = -5
ARITHMETIC = Source("arithmetic on stated facts")
WARP_LANES = 32
DEFAULT_CHUNKS = 2.0  # interleaving without a stated degree: the least there is
# BLOCK_M and N in {64, 128, 256}, BLOCK_K in {64, 128}, 3 to 5 stages, 4 or 8 warps: where Hopper GEMM configs lie.
HOPPER_SPACE = 3 * 3 * 2 * 3 * 2


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Nothing where nothing was stated."""
    yield from _kernel(evidence)
    yield from _slowdown(evidence)
    yield from _collective(evidence)
    yield from _pipeline(evidence)


def _fact(quantity: Quantity, value: float, note: str = "") -> Fact:
    return Fact(quantity, round(value) if quantity.unit is Unit.COUNT else value, ARITHMETIC, note=note)


def _idle_by_stage(evidence: Evidence, bubble: float, stages: float) -> Iterator[Item]:
    """The measured bubble is a mean over stages: the slowest idles what the schedule costs, the others carry the rest."""
    measured = next(iter(evidence.series(stated.STAGE_TIME)), None)
    if measured is not None:
        work = measured.values / measured.values.mean()
        named = [(f"stage {int(x)}", w) for x, w in zip(measured.x, work, strict=True)]
    else:
        ratio = _needed(evidence, bubble, stages)
        named = [("the slowest stage", ratio), (f"each of the other {stages - 1:.0f}", (stages - ratio) / (stages - 1))]
    for name, share in named:
        yield Fact(expected.STAGE_IDLE, max(0.0, 1.0 - share * (1.0 - bubble)), ARITHMETIC, Scope(layer=name))


def _needed(evidence: Evidence, bubble: float, stages: float) -> float:
    interleaved = "interleav" in evidence.text(stated.SCHEDULE).lower()
    chunks = evidence.value(stated.VIRTUAL_STAGES, DEFAULT_CHUNKS if interleaved else 1.0)
    return slowest_over_mean(bubble, stages, evidence.value(stated.MICROBATCHES), chunks)


def _kernel(evidence: Evidence) -> Iterator[Item]:
    card = card_of(evidence)
    if card is not None and (evidence.get(stated.GEMM_M) or evidence.get(stated.LIBRARY_FLOP_RATE)):
        dtype = dtype_of(evidence, "fp16")
        vector = card.peak(f"{dtype}_vector") if dtype in ("fp16", "bf16") else card.peak("fp32")
        yield _fact(expected.VECTOR_CEILING, vector)
        yield _fact(expected.MATRIX_PEAK, card.peak(dtype))
    m, n, k = (evidence.value(q) for q in (stated.GEMM_M, stated.GEMM_N, stated.GEMM_K))
    for rate, quantity in ((run.FLOP_RATE, expected.GEMM_TIME), (stated.LIBRARY_FLOP_RATE, expected.GEMM_TIME_LIBRARY)):
        value = evidence.value(rate)
        if m == m and n == n and k == k and value > 0:
            yield _fact(quantity, 2.0 * m * n * k / value)
    registers, block = evidence.get(kernel.REGISTERS), evidence.value(kernel.BLOCK_THREADS)
    if card is not None and registers is not None and registers.stated:
        per_thread = registers.number
        if per_thread > 0 and block > 0:
            blocks = np.floor(card.sm.registers / (per_thread * block))
            yield _fact(expected.WARP_LIMIT, float(min(1.0, blocks * block / WARP_LANES / card.sm.warps)))
    if evidence.get(stated.AUTOTUNE_CONFIGS) or evidence.table("autotune"):
        yield _fact(expected.AUTOTUNE_SPACE, float(HOPPER_SPACE))


NAMES = {run.MFU: "MFU", run.TOKENS_PER_S: "tokens", run.SAMPLES_PER_S: "samples", run.STEP_TIME: "a step"}


def _slowdown(evidence: Evidence) -> Iterator[Item]:
    for quantity, upward in (
        (run.MFU, False),
        (run.TOKENS_PER_S, False),
        (run.SAMPLES_PER_S, False),
        (run.STEP_TIME, True),
    ):
        now = next((f for f in evidence.all(quantity) if f.scope.run is None), None)
        before = evidence.get(quantity, run="before")
        if now is None or before is None or not now.number or not before.number:
            continue
        ratio = now.number / before.number if upward else before.number / now.number
        yield _fact(expected.SLOWDOWN, ratio, f"{NAMES[quantity]} {before} -> {now}")
        gpus, card = evidence.value(stated.GPUS), card_of(evidence)
        if gpus == gpus and ratio > 1:
            lost = gpus * (1.0 - 1.0 / ratio)
            yield _fact(expected.LOST_GPUS, lost)
            if card is not None and card.price_dollar_per_hour:
                yield _fact(expected.LOST_DOLLARS, lost * card.price_dollar_per_hour)
        return


def _collective(evidence: Evidence) -> Iterator[Item]:
    """What the trend up to the last scale but one predicts for the last: linear in ranks (latency) plus a constant."""
    for series in evidence.series(stated.ALLREDUCE_TIME):
        usable = np.isfinite(series.x) & np.isfinite(series.values) & (series.x > 0) & (series.values > 0)
        ranks, times = series.x[usable], series.values[usable]
        if len(ranks) < 3:
            continue
        ratios = [times[i] / _trend(ranks[:i], times[:i], ranks[i]) for i in range(2, len(ranks))]
        worst = int(np.argmax(ratios))
        place = worst + 2
        jump = explain_jump([(int(n), float(t)) for n, t in zip(ranks, times, strict=True)]) if ranks[0] >= 2 else None
        trend = float(_trend(ranks[:place], times[:place], ranks[place]))
        yield _fact(expected.RING_TIME, jump.expected_s if jump else trend)
        yield _fact(expected.CLIFF_RATIO, times[place] / jump.expected_s if jump else float(ratios[worst]))
        if jump is not None and np.isfinite(jump.narrower_ratio):
            yield _fact(expected.NARROWER, jump.narrower_ratio)  # as `plan collective` has it
        yield _fact(expected.CLIFF_GPUS, float(ranks[place]))
        yield _fact(expected.RING_FACTOR, ring_bytes_factor(ranks[place]) / ring_bytes_factor(ranks[place - 1]))
        return
    yield from _two_scales(evidence)


def _two_scales(evidence: Evidence) -> Iterator[Item]:
    """Two scales have no trend, but both terms of a ring grow at most with its ranks: what grows faster has left it.

    What grows less may have left it all the same: then nothing is said.
    """
    pairs = [
        (evidence.get(q, run="before"), next((f for f in evidence.all(q) if f.scope.run is None), None))
        for q in (stated.ALLREDUCE_TIME, stated.GPUS)
    ]
    (time_then, time_now), (then, now) = pairs
    if time_then and time_now and then and now and 1 < then.number < now.number:
        most_s = time_then.number * now.number / then.number
        if time_now.number <= most_s:
            return
        yield _fact(expected.RING_TIME, most_s)
        yield _fact(expected.CLIFF_RATIO, time_now.number / most_s)
        yield _fact(expected.CLIFF_GPUS, now.number)
        yield _fact(expected.RING_FACTOR, ring_bytes_factor(now.number) / ring_bytes_factor(then.number))


def _trend(ranks: np.ndarray, times: np.ndarray, at: float) -> float:
    slope, offset = np.polyfit(ranks, times, 1) if len(ranks) > 1 else (0.0, float(times[0]))
    return float(max(slope, 0.0) * at + offset) if slope > 0 else float(times[-1])


def _counted_of_useful(evidence: Evidence, stages: float, count: float) -> bool:
    """Whether the expectation beside a measured bubble is idle over useful time: both were then counted alike."""
    hoped = evidence.value(stated.BUBBLE_EXPECTED)
    if hoped != hoped:
        return False
    chunks = (1.0, evidence.value(stated.VIRTUAL_STAGES, DEFAULT_CHUNKS))
    useful = min(abs(hoped - bubble_over_useful(stages, count, v)) for v in chunks)
    return useful < min(abs(hoped - bubble_share(stages, count, v)) for v in chunks)


def _most_microbatches(evidence: Evidence) -> float:
    """What the global batch leaves a pipeline: with more replicas than are known of, each has fewer still."""
    replicas = max(evidence.value(stated.DP, 1.0), 1.0)
    each = evidence.value(stated.MICROBATCH)
    return evidence.value(stated.GLOBAL_BATCH) / (each * replicas) if each > 0 else math.nan


def _pipeline(evidence: Evidence) -> Iterator[Item]:
    stages, count = evidence.value(stated.PP), evidence.value(stated.MICROBATCHES)
    interleaved = "interleav" in evidence.text(stated.SCHEDULE).lower()
    chunks = evidence.value(stated.VIRTUAL_STAGES, DEFAULT_CHUNKS if interleaved else 1.0)
    if (
        stages > 1
        and count != count
        and (most := _most_microbatches(evidence)) >= 1
        and not evidence.all(stated.BUBBLE)
    ):
        yield _fact(
            expected.BUBBLE_SCHEDULE, bubble_share(stages, most, chunks), note=f"{most:.0f} micro-batches at most"
        )
    if not (stages > 1 and count > 0):
        return
    yield _fact(expected.BUBBLE_1F1B, bubble_share(stages, count))
    yield _fact(expected.BUBBLE_SCHEDULE, bubble_share(stages, count, chunks), note=f"{chunks:.0f} chunks a rank")
    yield _fact(expected.BUBBLE_DOUBLED, bubble_share(stages, 2 * count, chunks))
    yield _fact(expected.BUBBLE_FORMULA, bubble_over_useful(stages, count), note=f"{stages - 1:.0f}/{count:.0f}")
    bubble = evidence.get(stated.BUBBLE)
    if bubble is not None and 0.0 < bubble.number < 1.0:
        like_formula = _counted_of_useful(evidence, stages, count)
        share = of_the_step(bubble.number) if like_formula else bubble.number
        note = "of useful time, as the formula counts" if like_formula else "of the whole step"
        yield _fact(expected.BUBBLE_OF_STEP, share, note=note)
        other = f"; {_needed(evidence, bubble.number, stages):.2f}x if it is of the whole step" if like_formula else ""
        yield _fact(expected.STAGE_RATIO_NEEDED, _needed(evidence, share, stages), note=other)
        yield from _idle_by_stage(evidence, share, stages)
    # Forward 1, backward 2: a stage that re-runs its forward pass takes 4 where the others take 3.
    yield _fact(expected.RECOMPUTE_STAGE_RATIO, (4 / 3) / ((4 / 3 + stages - 1) / stages))
    for series in evidence.series(stated.STAGE_TIME):
        yield Fact(expected.STAGE_RATIO, float(series.values.max() / series.values.mean()), series.source)
    shape = shape_of(evidence)
    if shape is not None:
        yield _fact(expected.HEAD_LAYERS, shape.vocab * shape.hidden / shape.layer_params())
