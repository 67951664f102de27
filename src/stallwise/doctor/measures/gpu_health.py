"""What samples of GPU state say of each GPU under load: clocks, power, heat, links, errors, and how it compares.

Idle GPUs lower clocks and link speed on purpose, so every judgement-worthy number is taken from loaded samples only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stallwise.evidence.catalog import hardware as hw
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Scope, Source, Table
from stallwise.evidence.gpu_load import LOADED_SHARE
from stallwise.evidence.quantity import Quantity
from stallwise.physics.specs.hardware import find_gpu

ORDER = -10  # others ask for clocks and power
IDLE_BIT = 0x1
BUSY_POWER_SHARE = 0.4  # of the limit; idle cards draw a tenth to a fifth, working ones more than half
FEW = 8  # fewer loaded samples than this show no trend
REASON_SHARES: tuple[tuple[int, Quantity], ...] = (
    (0x4, hw.GPU_POWER_CAP_SHARE),
    (0x8, hw.GPU_HW_SLOWDOWN_SHARE),
    (0x20, hw.GPU_SW_THERMAL_SHARE),
    (0x40, hw.GPU_HW_THERMAL_SHARE),
    (0x80, hw.GPU_POWER_BRAKE_SHARE),
)
Column = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Gpu:
    """All samples of one GPU, joined over files."""

    scope: Scope
    source: Source
    name: str
    columns: dict[str, Column]
    loaded: NDArray[np.bool_]

    def column(self, name: str) -> Column:
        return self.columns.get(name, np.full(len(self.loaded), np.nan))


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Facts per GPU."""
    gpus = [_joined(tables) for tables in _by_gpu(evidence.table("gpu.samples")).values()]
    for gpu in gpus:
        yield from _state(gpu)
        yield from _reasons(gpu)
        yield from _violations(gpu)
        yield from _errors(gpu)
    yield from _against_neighbours(gpus)


def _by_gpu(tables: list[Table]) -> dict[tuple[Scope, str], list[Table]]:
    """Samples of one card may lie in several files; two models under one index are two machines."""
    models: dict[Scope, set[str]] = defaultdict(set)
    for table in tables:
        if table.meta.get("name"):
            models[table.scope].add(table.meta["name"])
    groups: dict[tuple[Scope, str], list[Table]] = defaultdict(list)
    for table in tables:
        known = models[table.scope]
        name = table.meta.get("name") or (next(iter(known)) if len(known) == 1 else "")
        scope = table.scope if len(known) < 2 else replace(table.scope, run=table.source.file)
        groups[scope, name].append(table)
    return groups


def _joined(tables: list[Table]) -> _Gpu:
    names = dict.fromkeys(name for table in tables for name in table.columns)
    columns = {
        name: np.concatenate([t.columns.get(name, np.full(len(t), np.nan)) for t in tables]).astype(float)
        for name in names
    }
    scope = tables[0].scope
    models = {t.meta.get("name", "") for t in tables}
    order = np.argsort(columns["time_s"], kind="stable")
    columns = {name: values[order] for name, values in columns.items()}
    return _Gpu(scope, tables[0].source, max(models, key=len), columns, _loaded(columns))


def _loaded(columns: dict[str, Column]) -> NDArray[np.bool_]:
    size = len(columns["time_s"])
    unknown = np.full(size, np.nan)
    use = columns.get("utilisation_share", unknown)
    power, limit = columns.get("power_w", unknown), columns.get("power_limit_w", unknown)
    reasons = np.nan_to_num(columns.get("reasons", unknown)).astype(np.int64)
    drawing = np.nan_to_num(power / limit) >= BUSY_POWER_SHARE
    by_use = np.nan_to_num(use) >= LOADED_SHARE
    return np.where(np.isnan(use), drawing & ((reasons & IDLE_BIT) == 0), by_use)


def _state(gpu: _Gpu) -> Iterator[Fact]:
    loaded, idle = gpu.loaded, ~gpu.loaded
    yield _fact(gpu, hw.GPU_SAMPLES, float(len(loaded)))
    if "utilisation_share" in gpu.columns or {"power_w", "power_limit_w"} <= gpu.columns.keys():
        yield _fact(gpu, hw.GPU_LOADED_SHARE, float(loaded.mean()), len(loaded))
    plan: tuple[tuple[Quantity, str, NDArray[np.bool_] | None, str], ...] = (
        (hw.GPU_UTILISATION, "utilisation_share", None, "mean"),
        (hw.GPU_MEMORY_USED, "memory_used_bytes", None, "max"),
        (hw.GPU_MEMORY_TOTAL, "memory_total_bytes", None, "max"),
        (hw.GPU_TEMPERATURE, "temperature_c", None, "max"),
        (hw.GPU_MEMORY_TEMPERATURE, "memory_temperature_c", None, "max"),
        (hw.GPU_SLOWDOWN_TEMPERATURE, "slowdown_temperature_c", None, "min"),
        (hw.GPU_MEMORY_SLOWDOWN_TEMPERATURE, "memory_slowdown_temperature_c", None, "min"),
        (hw.GPU_THERMAL_MARGIN, "thermal_margin_c", None, "min"),
        (hw.GPU_POWER, "power_w", loaded, "median"),
        (hw.GPU_POWER_LIMIT, "power_limit_w", None, "last"),
        (hw.GPU_POWER_DEFAULT, "power_default_limit_w", None, "max"),
        (hw.GPU_CLOCK, "clock_sm_hz", loaded, "median"),
        (hw.GPU_CLOCK_IDLE, "clock_sm_hz", idle, "median"),
        (hw.GPU_CLOCK_MAX, "clock_sm_max_hz", None, "max"),
        (hw.GPU_MEMORY_CLOCK, "clock_memory_hz", loaded, "median"),
        (hw.GPU_PCIE_GEN, "pcie_gen", loaded, "median"),
        (hw.GPU_PCIE_GEN_IDLE, "pcie_gen", idle, "median"),
        (hw.GPU_PCIE_GEN_MAX, "pcie_gen_max", None, "max"),
        (hw.GPU_PCIE_WIDTH, "pcie_width", None, "last"),
        (hw.GPU_PCIE_WIDTH_MAX, "pcie_width_max", None, "max"),
    )
    for quantity, column, where, how in plan:
        values = gpu.column(column) if where is None else gpu.column(column)[where]
        values = values[~np.isnan(values)]
        if len(values):
            yield _fact(gpu, quantity, _reduce(values, how), len(values))
    card = find_gpu(gpu.name)
    if card is not None and gpu.name.lower() in {name.lower() for name in (card.title, *card.aliases)}:
        yield _fact(gpu, hw.GPU_POWER_PUBLISHED, card.power_w)  # by its whole name: a part of it fits weaker twins too
    clocks = gpu.column("clock_sm_hz")[loaded]
    clocks = clocks[~np.isnan(clocks)]
    if len(clocks) >= FEW:
        best, recent = np.quantile(clocks, 0.9), np.median(clocks[-max(len(clocks) // 4, 2) :])
        yield _fact(gpu, hw.GPU_CLOCK_FALL, float(max(0.0, 1 - recent / best)) if best else 0.0, len(clocks))


def _reasons(gpu: _Gpu) -> Iterator[Fact]:
    reasons = gpu.column("reasons")
    known = ~np.isnan(reasons)
    awake = known & ((np.nan_to_num(reasons).astype(np.int64) & IDLE_BIT) == 0)
    chosen = known & gpu.loaded
    if not chosen.any():
        chosen = awake
    if not chosen.any():
        return
    bits = reasons[chosen].astype(np.int64)
    for bit, quantity in REASON_SHARES:
        yield _fact(gpu, quantity, float(((bits & bit) != 0).mean()), len(bits))


def _violations(gpu: _Gpu) -> Iterator[Fact]:
    """Counters of time held down by heat: the share of intervals in which they grew. Power alone is normal."""
    held = gpu.column("thermal_violation")
    held = held[~np.isnan(held)]
    if len(held) >= 2 and "reasons" not in gpu.columns:
        yield _fact(gpu, hw.GPU_SW_THERMAL_SHARE, float((np.diff(held) > 0).mean()), len(held) - 1)


def _errors(gpu: _Gpu) -> Iterator[Fact]:
    pairs = (
        (hw.GPU_ECC_CORRECTED, ("ecc_corrected", "ecc_corrected_ever")),
        (hw.GPU_ECC_UNCORRECTED, ("ecc_uncorrected", "ecc_uncorrected_ever")),
        (hw.GPU_REMAP_PENDING, ("remap_pending",)),
        (hw.GPU_REMAP_FAILED, ("remap_failed",)),
        (hw.GPU_REMAPPED_ROWS, ("remapped_uncorrectable",)),
        (hw.GPU_PCIE_REPLAYS, ("pcie_replays",)),
    )
    for quantity, columns in pairs:
        values = np.concatenate([gpu.column(c) for c in columns])
        values = values[~np.isnan(values)]
        if len(values):
            yield _fact(gpu, quantity, float(values.max()), len(values))


def _against_neighbours(gpus: list[_Gpu]) -> Iterator[Fact]:
    """A card that clocks lower, draws less or is cooler than the same cards beside it, doing the same work."""
    groups: dict[tuple[str | None, str], list[_Gpu]] = defaultdict(list)
    for gpu in gpus:
        if gpu.loaded.any():
            groups[gpu.scope.node, gpu.name].append(gpu)
    for members in groups.values():
        for column, quantity in (("clock_sm_hz", hw.GPU_CLOCK_BEHIND), ("power_w", hw.GPU_POWER_BEHIND)):
            for gpu, value, typical, others in _typical(members, column):
                if typical > 0:
                    yield _fact(gpu, quantity, max(0.0, 1 - value / typical), others)
        for gpu, value, typical, others in _typical(members, "temperature_c"):
            yield _fact(gpu, hw.GPU_COOLER, typical - value, others)


def _typical(members: list[_Gpu], column: str) -> Iterator[tuple[_Gpu, float, float, int]]:
    """Each GPU's median under load and the median of the others'."""
    medians = []
    for gpu in members:
        values = gpu.column(column)[gpu.loaded]
        values = values[~np.isnan(values)]
        if len(values):
            medians.append((gpu, float(np.median(values))))
    for gpu, value in medians:
        others = [v for g, v in medians if g is not gpu]
        if others:
            yield gpu, value, float(np.median(others)), len(others)


def _reduce(values: Column, how: str) -> float:
    match how:
        case "mean":
            return float(values.mean())
        case "max":
            return float(values.max())
        case "min":
            return float(values.min())
        case "last":
            return float(values[-1])
    return float(np.median(values))


def _fact(gpu: _Gpu, quantity: Quantity, value: float, samples: int = 1) -> Fact:
    return Fact(quantity, value, gpu.source, gpu.scope, samples)
