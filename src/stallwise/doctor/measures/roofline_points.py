"""Kernels as points under the roofline: operations a byte, rate reached, and the roof above them.

From a trace: matrix work whose shapes were recorded, bytes counted once for each operand (so the intensity is the
best possible one). From hardware counters: what the pipes and the memory really did.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from stallwise.doctor.measures._matrix_shapes import matrix_shapes
from stallwise.doctor.measures._step_index import step_index
from stallwise.doctor.measures._vocabulary import Work, matrix_precision
from stallwise.evidence.catalog import hardware
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Scope, Source, Table
from stallwise.evidence.quantity import Quantity
from stallwise.evidence.timeline import Timeline
from stallwise.physics.costs.roofline import ceiling_flop_per_s, rate_by_pipes
from stallwise.physics.specs.hardware import Gpu, all_gpus, find_gpu

KIND = "roofline"
ORDER = 40
MOST_POINTS = 24
BUSY_SHARE = 0.02  # of the memory's peak: below, two printed decimals round the ratio of rate and share away
ALIKE = 0.08  # of the bandwidth: memory clocks of one card differ by less, cards of one chip by more
SHOWN_CEILINGS = ("fp8", "bf16", "tf32", "fp32")

Point = tuple[str, str, float, float, float, float]  # name, dtype, intensity, rate, seconds, roof


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """Matrix kernels of the usual step, by name."""
    index = step_index(timeline)
    gpu = index.view.gpu
    if gpu is None or not len(index.view):
        return
    lengths = np.diff(index.windows.device)
    usual = int(np.argmin(np.abs(lengths - np.median(lengths))))
    lo, hi = index.windows.device[usual], index.windows.device[usual + 1]
    view = index.view
    wanted = np.isin(index.purposes.work, (Work.GEMM, Work.CONV, Work.ATTENTION)) & view.is_kernel
    at = np.flatnonzero(wanted & (view.start >= lo) & (view.start < hi))
    shapes = matrix_shapes(index, at) if len(at) else None
    if shapes is None:
        return
    sums: dict[str, np.ndarray[Any, Any]] = {}
    known = np.isfinite(shapes.flop) & (shapes.size_bytes > 0)
    for i in np.flatnonzero(known).tolist():
        name = timeline.text(int(view.work[at[i]]))
        add = np.array([shapes.flop[i], shapes.size_bytes[i], shapes.seconds[i]])
        sums[name] = sums.get(name, np.zeros(3)) + add
    points: list[Point] = []
    for name, (flop, size, seconds) in sums.items():
        if seconds <= 0:
            continue
        dtype = matrix_precision(name) or "bf16"
        points.append((name, dtype, flop / size, flop / seconds, seconds, ceiling_flop_per_s(gpu, dtype, flop / size)))
    label = index.windows.labels[usual] if usual < len(index.windows.labels) else index.windows.how
    yield from _table(points, gpu, Source(timeline.source.file, label), timeline.scope)


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Profiled kernels, by their counters."""
    points: list[Point] = []
    gpu: Gpu | None = None
    source = Source("counters")
    unnamed = find_gpu(evidence.text(hardware.GPU_NAME)) or card_by_counters(evidence)
    for scope in evidence.scopes("kernel"):
        time = evidence.get(k.TIME, kernel=scope.kernel)
        card = find_gpu(evidence.text(k.DEVICE, kernel=scope.kernel)) or unnamed
        if time is None or card is None:
            continue

        def share(quantity: Quantity, scope: Scope = scope) -> float:
            return evidence.value(quantity, 0.0, kernel=scope.kernel)

        traffic = share(k.DRAM_RATE) or share(k.DRAM_SHARE) * card.bandwidth_byte_per_s
        named = matrix_precision(scope.kernel or "")
        # The FMA pipe also multiplies integers, so its share bounds the rate where the FP32 share was not collected.
        fp32 = share(k.FP32_PEAK_SHARE) or share(k.FMA_SHARE)
        fp64 = share(k.FP64_PEAK_SHARE) or share(k.FP64_SHARE)
        flops = rate_by_pipes(card, share(k.TENSOR_SHARE), named, fp32, fp64)
        if flops <= 0 or traffic <= 0:
            continue
        gpu, source = card, Source(time.source.file, "counters")
        on_tensor = rate_by_pipes(card, share(k.TENSOR_SHARE), named, 0.0, 0.0) > 0.5 * flops
        dtype = (named or "bf16") if on_tensor else "fp32"
        intensity = flops / traffic
        ceiling = ceiling_flop_per_s(card, dtype, intensity)
        points.append((scope.kernel or "", dtype, intensity, min(flops, ceiling), time.number, ceiling))
    if gpu is not None:
        yield from _table(points, gpu, source, Scope())


def card_by_counters(evidence: Evidence) -> Gpu | None:
    """The catalogue's card with these multiprocessors, this capability and this bandwidth, where a page names none.

    Both a rate and its share of the peak are counted, so their ratio is the card's bandwidth, whatever the kernel did.
    """
    kernels = [s.kernel for s in evidence.scopes("kernel")]
    peaks, sizes, capabilities = [], set(), set()
    for name in kernels:
        rate, share = evidence.value(k.DRAM_RATE, 0.0, kernel=name), evidence.value(k.DRAM_SHARE, 0.0, kernel=name)
        if share > BUSY_SHARE and rate > 0:
            peaks.append(rate / share)
        sizes.add(evidence.value(k.SM_COUNT, 0.0, kernel=name))
        capabilities.add(evidence.text(k.CAPABILITY, kernel=name))
    if not peaks or len(sizes) != 1 or len(capabilities) != 1:
        return None
    peak = float(np.median(peaks))
    alike = [g for g in all_gpus() if g.sm_count in sizes and g.compute_capability in capabilities]
    near = min(alike, key=lambda g: abs(g.bandwidth_byte_per_s / peak - 1.0), default=None)
    return near if near is not None and abs(near.bandwidth_byte_per_s / peak - 1.0) < ALIKE else None


def _table(points: list[Point], gpu: Gpu, source: Source, scope: Scope) -> Iterator[Item]:
    if not points:
        return
    points = sorted(points, key=lambda p: -p[4])[:MOST_POINTS]
    name, dtype, intensity, rate, seconds, ceiling = zip(*points, strict=True)
    ceilings = {d: gpu.peak(d) for d in SHOWN_CEILINGS if d in gpu.peak_flop_per_s and (d in dtype or d == "bf16")}
    yield Table(
        KIND,
        {
            "name": np.array(name, dtype=object),
            "dtype": np.array(dtype, dtype=object),
            "intensity": np.array(intensity),
            "rate_flop_per_s": np.array(rate),
            "seconds": np.array(seconds),
            "roof_flop_per_s": np.array(ceiling),
        },
        source,
        scope,
        {"gpu": gpu.title, "bandwidth_byte_per_s": gpu.bandwidth_byte_per_s, "peaks_flop_per_s": ceilings},
    )
