"""What a kernel's counters imply: what limits its occupancy, why its warps wait, whether it is a matrix product."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.doctor.measures._vocabulary import matrix_precision
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Scope, Source
from stallwise.evidence.quantity import Quantity
from stallwise.physics.costs.occupancy import chip, fp32_over_fp64, limiter, matrix_over_vector, occupancy

ORDER = 10

# Words that library authors put into names of matrix products; ordinary names decide nothing by themselves.
_CONTRACTION = re.compile(
    r"gemm|gemv|matmul|(?<![a-z])(?:add)?b?mm(?![a-z])|conv(?!ert)|wgrad|dgrad|xmma|cutlass|cublas|nvjet|attention|"
    r"flash_|fmha|(?<![a-z])linear|(?<![a-z])dot(?![a-z])|einsum|wgmma|hmma|s\d{4,5}",
    re.I,
)
_TYPES = re.compile(r"__half2?|half_t|__nv_bfloat162?|bfloat16(?:_t)?|bf16|double|float|f16|f32|f64|tf32|int8|fp8|e4m3")

MATRIX_FMA = 0.10  # of the FMA pipe: below, arithmetic is not what the kernel is about
MATRIX_L1 = 0.30  # of L1 and shared-memory bandwidth: operands come from on-chip copies
MATRIX_DRAM = 0.35  # above it the kernel streams rather than reuses
NOT_A_LOSS = ("selected", "not_selected")  # reasons of a stall: the warp could issue
FUSED = 0.5  # a product is made of fused multiply-adds; sums of differences are not
PIPES = (k.TENSOR_SHARE, k.FMA_SHARE, k.FP64_SHARE, k.ALU_SHARE, k.XU_SHARE)
_PIPE_WORDS = {
    k.TENSOR_SHARE.name: "Tensor", k.FMA_SHARE.name: "FMA", k.FP64_SHARE.name: "FP64", k.ALU_SHARE.name: "ALU",
    k.XU_SHARE.name: "XU",
}  # fmt: skip


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Derived facts of every kernel that was profiled."""
    for scope in list(evidence.scopes("kernel")):
        view = evidence.within(scope)
        if not any(
            view.get(q, kernel=scope.kernel)
            for q in (k.TIME, k.SM_SHARE, k.SM_BUSY_SHARE, k.DRAM_SHARE, k.TENSOR_SHARE)
        ):
            continue
        for quantity, value in _derived(view, scope):
            source = _source(view)
            yield Fact(quantity, value, source, scope)


def _source(view: Evidence) -> Source:
    fact = view.get(k.TIME) or view.get(k.SM_SHARE) or view.get(k.DRAM_SHARE) or view.get(k.TENSOR_SHARE)
    return fact.source if fact else Source("counters")


def _derived(view: Evidence, scope: Scope) -> Iterator[tuple[Quantity, float | str]]:
    name = scope.kernel or ""
    signature = name.split("(", 1)[0]
    matrix_name = bool(_CONTRACTION.search(signature))
    yield k.KIND, "matrix product" if matrix_name else "unknown"
    if matrix_name and (precision := matrix_precision(name)):
        yield k.NAMED_PRECISION, precision
    types = ", ".join(dict.fromkeys(_TYPES.findall(name)))
    if types:
        yield k.ARGUMENT_TYPES, types
    yield from _top_pipe(view)
    yield from _top_stall(view)
    yield from _launch(view)
    yield k.CONTRACTION, _contraction(view, matrix_name)
    gpu = chip(view.text(k.DEVICE), view.text(k.CAPABILITY))
    if gpu is not None:
        yield k.MATRIX_PEAK_RATIO, matrix_over_vector(gpu)
        if view.get(k.FP32_OVER_FP64) is None:
            yield k.FP32_OVER_FP64, fp32_over_fp64(gpu)


def _top_pipe(view: Evidence) -> Iterator[tuple[Quantity, float | str]]:
    if view.get(k.TOP_PIPE) is not None:
        return
    known = [(fact.number, _PIPE_WORDS[q.name]) for q in PIPES if (fact := view.get(q)) is not None]
    if len(known) >= 2:
        share, word = max(known)
        yield k.TOP_PIPE, word
        yield k.TOP_PIPE_SHARE, share


def _top_stall(view: Evidence) -> Iterator[tuple[Quantity, float | str]]:
    known = [
        (fact.number, word)
        for word, q in k.STALLS.items()
        if word not in NOT_A_LOSS and (fact := view.get(q)) is not None
    ]
    if known:
        share, word = max(known)
        yield k.TOP_STALL, word
        yield k.TOP_STALL_SHARE, share


def _launch(view: Evidence) -> Iterator[tuple[Quantity, float | str]]:
    limits = [view.value(q) for q in (k.LIMIT_REGISTERS, k.LIMIT_SHARED, k.LIMIT_WARPS, k.LIMIT_BLOCKS)]
    if all(x == x for x in limits):
        yield k.OCCUPANCY_LIMITER, limiter(*limits)
        yield k.BLOCKS_PER_SM, min(limits)
        return
    gpu = chip(view.text(k.DEVICE), view.text(k.CAPABILITY))
    registers, threads = view.value(k.REGISTERS), view.value(k.BLOCK_THREADS)
    if gpu is None or registers != registers or threads != threads:
        return
    fit = occupancy(
        gpu.sm, _number(gpu.compute_capability), registers=int(registers),
        shared_bytes=view.value(k.SHARED_BYTES, 0.0), block_threads=int(threads),
    )  # fmt: skip
    yield k.OCCUPANCY_LIMITER, fit.limiter
    yield k.BLOCKS_PER_SM, float(fit.blocks)
    if view.get(k.THEORETICAL_OCCUPANCY) is None:
        yield k.THEORETICAL_OCCUPANCY, fit.share
    if view.get(k.WAVES) is None and fit.blocks and (grid := view.value(k.GRID_BLOCKS, 0.0)):
        yield k.WAVES, grid / (fit.blocks * view.value(k.SM_COUNT, gpu.sm_count))


def _number(capability: str) -> float:
    try:
        return float(capability)
    except ValueError:
        return 0.0


def _contraction(view: Evidence, matrix_name: bool) -> float:
    """Tensor instructions prove a matrix product; a product on ordinary cores shows as reuse of on-chip operands."""
    if view.value(k.TENSOR_SHARE, 0.0) >= 0.03:
        return 1.0
    fma = max(view.value(k.FMA_SHARE, 0.0), view.value(k.FP32_PEAK_SHARE, 0.0))
    fused = view.value(k.FUSED_SHARE, 1.0)
    if matrix_name:
        return 0.9 if fma >= MATRIX_FMA or view.get(k.FMA_SHARE) is None else 0.7
    reuse = view.value(k.L1_SHARE, 0.0) >= MATRIX_L1 and view.value(k.DRAM_SHARE, 1.0) < MATRIX_DRAM
    return 0.8 if fma >= MATRIX_FMA and reuse and fused >= FUSED else 0.0
