"""What cannot be true: stated or measured numbers that physics, arithmetic or each other forbid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from stallwise.doctor.findings.finding import Reason
from stallwise.evidence.catalog import expected, fabric, kernel, memory, run, stated
from stallwise.evidence.error_boundary import kept
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact, Note, Source
from stallwise.units import Unit, show

if TYPE_CHECKING:
    from stallwise.physics.specs.hardware import Gpu

READ_AGAIN = 3.0  # times the least bytes: below it caches of a usual size explain the rest
BYTES = {"fp8": 1.0, "fp32": 4.0, "tf32": 4.0, "fp64": 8.0}  # of a number; two for the 16-bit types
SLACK = 1.02  # rounding in what people type


def contradictions(evidence: Evidence) -> tuple[Reason, ...]:
    """Every check that fails, as a sentence with its arithmetic."""
    found: list[Reason] = []
    for check in _CHECKS:
        for reason in kept(check(evidence), f"the check of {check.__name__.strip('_').replace('_', ' ')}", Source("")):
            (evidence.notes if isinstance(reason, Note) else found).append(reason)  # type: ignore[arg-type]
    return tuple(found)


def _gpu(evidence: Evidence) -> Gpu | None:
    if not evidence.get(stated.GPU):
        return None
    from stallwise.physics.specs.hardware import find_gpu

    return find_gpu(evidence.text(stated.GPU))


def _rate(value: float) -> str:
    return show(value, Unit.FLOP_PER_S)


def _rate_over_peak(evidence: Evidence) -> Iterator[Reason]:
    card = _gpu(evidence)
    if card is None:
        return
    dtype = _dtype(evidence)
    if dtype == "fp32":
        dtype = "tf32"  # libraries may run fp32 products as TF32 without saying so
    for quantity in (run.FLOP_RATE, stated.LIBRARY_FLOP_RATE):
        for fact in evidence.all(quantity):
            if fact.number > card.peak(dtype) * SLACK:
                text = f"{fact} is above the {_rate(card.peak(dtype))} that {card.title} can do in dense {dtype}"
                sparse = (
                    " (the doubled figure on the data sheet is for 2:4 sparsity)"
                    if fact.number <= 2 * card.peak(dtype)
                    else ""
                )
                yield Reason.of(text + sparse, fact)


def _cuda_cores_alone(evidence: Evidence) -> Iterator[Reason]:
    """A rate above the CUDA-core ceiling proves that tensor cores work, whatever the summary's percentage suggests."""
    card, rate = _gpu(evidence), _own_rate(evidence)
    if card is None or rate is None:
        return
    dtype = _dtype(evidence)
    ceiling = card.peak(f"{dtype}_vector") if dtype in ("fp16", "bf16") else card.peak("fp32")
    if ceiling * SLACK < rate.number <= card.peak(dtype) and (
        evidence.get(stated.GEMM_M) or evidence.get(stated.LIBRARY_FLOP_RATE)
    ):
        yield Reason.of(
            f"'no tensor cores at all' cannot be: {rate} is above the {_rate(ceiling)} that the CUDA cores of {card.title} "
            f"reach in {dtype}, so tensor instructions do run, but starved",
            rate,
        )


def _own_rate(evidence: Evidence) -> Fact | None:
    return next((f for f in evidence.all(run.FLOP_RATE) if f.scope.run != "before"), None)


def _dtype(evidence: Evidence) -> str:
    word = evidence.text(run.PRECISION, "bf16").lower()
    return next((d for d in ("fp8", "fp16", "bf16", "tf32", "fp64", "fp32") if d in word), "bf16")


def _mfu_over_hfu(evidence: Evidence) -> Iterator[Reason]:
    mfu, hfu = evidence.get(run.MFU), evidence.get(run.HFU)
    if mfu and hfu and mfu.number > hfu.number * SLACK:
        yield Reason.of(
            f"MFU {mfu} is above HFU {hfu}: executed FLOP include all useful ones, so HFU is never smaller", mfu, hfu
        )


def _shares(evidence: Evidence) -> Iterator[Reason]:
    for facts in list(evidence.facts.values()):
        for fact in facts:
            if fact.quantity.unit is Unit.SHARE and not isinstance(fact.value, str) and fact.number > 1.0001:
                if fact.stated:
                    yield Reason.of(f"{fact.quantity.name} = {fact.number:.2f} is a share and cannot exceed 100%", fact)


def _parallel_degrees(evidence: Evidence) -> Iterator[Reason]:
    degrees = [(q, evidence.get(q)) for q in (fabric.TP_SIZE, stated.PP, stated.DP, stated.CP)]
    gpus, known = evidence.get(stated.GPUS), [(q, f) for q, f in degrees if f is not None]
    if gpus is None or evidence.get(stated.DP) is None:
        return
    product = 1.0
    for _, fact in known:
        product *= fact.number
    if product != gpus.number:
        terms = " x ".join(f"{q.name.upper()} {f}" for q, f in known)
        yield Reason.of(f"{terms} = {product:.0f} GPUs, but {gpus} are stated", gpus, *(f for _, f in known))


def _memory_over_capacity(evidence: Evidence) -> Iterator[Reason]:
    card = _gpu(evidence)
    capacity = evidence.value(memory.CAPACITY, card.memory_bytes if card else float("nan"))
    for quantity in (run.GPU_MEMORY, memory.PEAK):
        for fact in evidence.all(quantity):
            if fact.number > capacity * 1.08:  # GiB typed as GB makes 7%
                yield Reason.of(f"{fact} of memory do not fit the {show(capacity, Unit.BYTE)} of one GPU", fact)


def _free_over_request(evidence: Evidence) -> Iterator[Reason]:
    request, free = evidence.get(memory.REQUEST), evidence.get(memory.FREE)
    if request is not None and free is not None and free.number > 1.05 * request.number > 0:
        yield Reason.of(
            f"{request} could not be had although {free} were free: a limit of the process or driver, or another process "
            "at that moment",
            request, free,
        )  # fmt: skip


def _parts_over_step(evidence: Evidence) -> Iterator[Reason]:
    step = evidence.get(run.STEP_TIME)
    if step is None:
        return
    for quantity in (run.DATA_TIME, stated.ALLREDUCE_TIME, run.SYNC_TIME):
        part = evidence.get(quantity)
        if part is not None and part.stated and step.stated and part.number > step.number * SLACK:
            yield Reason.of(f"{quantity.name} {part} is longer than the whole step of {step}", part, step)


def _bubble_under_minimum(evidence: Evidence) -> Iterator[Reason]:
    bubble, stages, count = evidence.get(stated.BUBBLE), evidence.get(stated.PP), evidence.get(stated.MICROBATCHES)
    if bubble is None or stages is None or count is None or "zb" in evidence.text(stated.SCHEDULE).lower():
        return
    chunks = evidence.value(stated.VIRTUAL_STAGES, 1.0)
    if min(stages.number, count.number, chunks) < 1:
        return  # no schedule has fewer
    idle = (stages.number - 1) / (count.number * chunks)
    least = idle / (1 + idle)
    if evidence.get(stated.VIRTUAL_STAGES) is None and "interleav" in evidence.text(stated.SCHEDULE).lower():
        return  # any degree could be meant
    if bubble.number < least / SLACK:
        yield Reason.of(
            f"a bubble of {bubble} is below the least possible {least:.1%} of {stages} stages and {count} micro-batches",
            bubble, stages, count,
        )  # fmt: skip


def _occupancy_over_limit(evidence: Evidence) -> Iterator[Reason]:
    """Registers bound the resident blocks: achieved occupancy cannot exceed what they allow."""
    limit, achieved = evidence.get(expected.WARP_LIMIT), evidence.get(kernel.ACHIEVED_OCCUPANCY)
    registers, block = evidence.get(kernel.REGISTERS), evidence.get(kernel.BLOCK_THREADS)
    if limit and achieved and registers and block and achieved.stated and achieved.number > limit.number + 0.02:
        yield Reason.of(
            f"an occupancy of {achieved} cannot be: {registers} registers x {block} threads leave room for blocks that fill "
            f"only {limit.number:.1%} of the warp slots; one of the three numbers belongs to another launch",
            achieved, registers, block,
        )  # fmt: skip


def _mfu_and_rate(evidence: Evidence) -> Iterator[Reason]:
    card, mfu, rate = _gpu(evidence), evidence.get(run.MFU), evidence.get(run.FLOP_RATE)
    if card is None or mfu is None or rate is None or mfu.scope != rate.scope:
        return
    implied = rate.number / card.peak(_dtype(evidence))
    if mfu.stated and rate.stated and abs(implied - mfu.number) > 0.05 + 0.1 * mfu.number:
        yield Reason.of(f"{rate} on {card.title} is an MFU of {implied:.0%}, but {mfu} is stated", mfu, rate)


def _pipe_and_rate(evidence: Evidence) -> Iterator[Reason]:
    """A tensor pipe in use for so much of the time cannot give more than that part of its peak."""
    card, rate, pipe = _gpu(evidence), _own_rate(evidence), evidence.get(kernel.TENSOR_SHARE)
    if card is None or rate is None or pipe is None or not 0.0 < pipe.number < 1.0:
        return
    most = pipe.number * card.peak(_dtype(evidence))
    if rate.number > most * SLACK:
        yield Reason.of(
            f"a tensor pipe in use {pipe} of the time gives at most {_rate(most)} of {_rate(card.peak(_dtype(evidence)))}, below the "
            f"{rate} measured: the two belong to different launches, or the counter takes in time beside the kernel",
            pipe, rate,
        )  # fmt: skip


def _bytes_read_again(evidence: Evidence) -> Iterator[Reason]:
    """A product must read its inputs and write its output once; what DRAM moved beyond that was read again."""
    card, share, took = _gpu(evidence), evidence.get(kernel.DRAM_SHARE), evidence.get(expected.GEMM_TIME)
    m, n, k = (evidence.get(q) for q in (stated.GEMM_M, stated.GEMM_N, stated.GEMM_K))
    if card is None or share is None or took is None or m is None or n is None or k is None:
        return
    moved = share.number * card.bandwidth_byte_per_s * took.number
    must = BYTES.get(_dtype(evidence), 2.0) * (m.number * k.number + k.number * n.number + m.number * n.number)
    if moved > READ_AGAIN * must:
        yield Reason.of(
            f"DRAM at {share} for {took} moves {show(moved, Unit.BYTE)}, {moved / must:.0f} times the bytes that the product must "
            f"move ({show(must, Unit.BYTE)}): tiles are read again and again, so reuse is missing although DRAM is not the limit",
            share, took,
        )  # fmt: skip


_CHECKS: tuple[Callable[[Evidence], Iterator[Reason]], ...] = (
    _rate_over_peak,
    _cuda_cores_alone,
    _mfu_over_hfu,
    _shares,
    _parallel_degrees,
    _memory_over_capacity,
    _free_over_request,
    _parts_over_step,
    _bubble_under_minimum,
    _mfu_and_rate,
    _occupancy_over_limit,
    _pipe_and_rate,
    _bytes_read_again,
)
