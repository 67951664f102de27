"""Nsight Compute launches as facts, whatever page or version they came from.

Every page gives the same thing: per launch, metrics by display name or by counter name, and the tool's own rule texts,
which carry counters that the details page shows nowhere else (busiest pipe, excess sectors, stall shares).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Note, Scope, Source
from stallwise.evidence.quantity import Quantity
from stallwise.readers.native._ncu_names import STALL_COUNTER, counters, displayed, facts_in_rule
from stallwise.units import Unit

_SCALE = {"n": 1e-9, "u": 1e-6, "µ": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_TIME_UNIT = re.compile(r"^([nuµm]?)s(?:ec(?:ond)?s?)?$")
_BYTE_UNIT = re.compile(r"^([kKMGT]?)(?:i?B|byte)s?(?:/(?:block|s|second|sector))?$")
_EUROPEAN = re.compile(r"^\d{1,3}(?:\.\d{3})+,\d+$")  # 1.234,56 where the locale writes so
L1 = "l1tex__"
_VENDOR_LOCAL = "local"  # the tool's local estimates speak of one unit, not of the kernel


@dataclass(slots=True)
class Launch:
    """One profiled launch."""

    name: str
    where: str
    grid: str = ""
    block: str = ""
    capability: str = ""
    device: str = ""
    metrics: dict[str, tuple[str, str]] = field(default_factory=dict)  # name -> (value, unit)
    rules: list[tuple[str, str, str, str]] = field(default_factory=list)  # name, text, speedup kind, speedup in %

    def values(self) -> dict[Quantity, float | str]:
        """Every quantity that this launch tells."""
        found: dict[Quantity, float | str] = {}
        for name, (text, unit) in self.metrics.items():
            quantity = displayed().get((name, _unit_class(unit))) or displayed().get((name, ""))
            if quantity is not None and (value := number(text, unit, quantity.unit)) is not None:
                found.setdefault(quantity, value)
        for quantity, names in counters():
            for name in names:
                if name in self.metrics and quantity not in found:
                    cell = number(*self.metrics[name], quantity.unit)
                    if cell is not None:
                        found[quantity] = cell
        for _, text, _, _ in self.rules:
            for measured, told in facts_in_rule(text).items():
                found.setdefault(measured, told)
        self._derive(found)
        return found

    def _raw(self, *names: str) -> float | None:
        for name in names:
            if name in self.metrics:
                value = number(*self.metrics[name], Unit.COUNT)
                if value is not None:
                    return value
        return None

    def _derive(self, found: dict[Quantity, float | str]) -> None:
        """Sums and ratios of counters of one launch: still a matter of format, not of cause."""
        shared = [self._size("launch__shared_mem_per_block_dynamic", "Dynamic Shared Memory Per Block"),
                  self._size("launch__shared_mem_per_block_static", "Static Shared Memory Per Block")]  # fmt: skip
        if any(s is not None for s in shared):
            found.setdefault(k.SHARED_BYTES, sum(s or 0.0 for s in shared))
        active = self._raw("sm__cycles_active.avg", "SM Active Cycles", "Average SM Active Cycles")
        elapsed = self._raw("sm__cycles_elapsed.max", "Elapsed Cycles")
        most = self._raw("sm__cycles_active.max")
        if active is not None and elapsed:
            found.setdefault(k.SM_ACTIVE, min(active / elapsed, 1.0))
        if active is not None and most:
            found[k.SM_IMBALANCE] = max(0.0, 1 - active / most)
        double = self._raw("sm__pipe_tensor_op_dmma_cycles_active.avg.pct_of_peak_sustained_elapsed")
        if double:  # tensor cores in double precision are counted apart
            found[k.TENSOR_SHARE] = max(double / 100, float(found.get(k.TENSOR_SHARE, 0.0)))
        self._derive_memory(found)
        self._derive_arithmetic(found)
        latency = self._raw("smsp__average_warp_latency_per_inst_issued.ratio", "Warp Cycles Per Issued Instruction")
        if latency:
            found[k.WARP_LATENCY] = latency
            for name in self.metrics:
                match = STALL_COUNTER.match(name)
                quantity = k.STALLS.get(match[1]) if match else None
                if quantity is not None and (cycles := self._raw(name)) is not None:
                    found[quantity] = min(cycles / latency, 1.0)

    def _derive_memory(self, found: dict[Quantity, float | str]) -> None:
        excess = self._raw("derived__memory_l2_theoretical_sectors_global_excessive")
        sectors = self._raw("memory_l2_theoretical_sectors_global")
        if excess is not None and sectors:
            found[k.EXCESS_SECTORS] = min(excess / sectors, 1.0)
        atoms = self._raw(f"{L1}data_bank_conflicts_pipe_lsu_mem_shared_op_atom.sum") or 0.0
        shares = [
            self._ratio("derived__memory_l1_wavefronts_shared_excessive", "memory_l1_wavefronts_shared"),
            self._ratio(
                f"{L1}data_bank_conflicts_pipe_lsu_mem_shared.sum", f"{L1}data_pipe_lsu_wavefronts_mem_shared.sum"
            ),
        ]
        conflicts = self._raw(f"{L1}data_bank_conflicts_pipe_lsu_mem_shared.sum") or 0.0
        # Shared atomics that collide count as conflicts too, but padding does not help them: they are told as atomics.
        if any(s is not None for s in shares) and atoms <= 0.5 * conflicts:
            found[k.CONFLICT_SHARE] = max(s for s in shares if s is not None)
        local = self._total(
            f"{L1}t_sectors_pipe_lsu_mem_local_op_ld.sum", f"{L1}t_sectors_pipe_lsu_mem_local_op_st.sum"
        )
        other = self._total(
            f"{L1}t_sectors_pipe_lsu_mem_global_op_ld.sum", f"{L1}t_sectors_pipe_lsu_mem_global_op_st.sum"
        )
        if local is not None and other is not None and local + other > 0:
            found[k.LOCAL_TRAFFIC] = local / (local + other)
        requests = self._total("smsp__sass_inst_executed_op_local_ld.sum", "smsp__sass_inst_executed_op_local_st.sum")
        if requests is None:
            requests = self._total("smsp__inst_executed_op_local_ld.sum", "smsp__inst_executed_op_local_st.sum")
        if requests is not None:
            found[k.SPILL_REQUESTS] = max(requests, float(found.get(k.SPILL_REQUESTS, 0.0)))
        atomics = self._total(
            f"{L1}t_requests_pipe_lsu_mem_global_op_atom.sum", f"{L1}t_requests_pipe_lsu_mem_global_op_red.sum"
        )
        if atomics is not None:
            found[k.ATOMIC_REQUESTS] = atomics
        for stem in ("lts__t_sectors", "lts__cycles_active"):
            mean = self._ratio(f"{stem}.avg", f"{stem}.max")
            if mean is not None and k.L2_IMBALANCE not in found:
                found[k.L2_IMBALANCE] = max(0.0, 1 - mean)

    def _derive_arithmetic(self, found: dict[Quantity, float | str]) -> None:
        stem = "smsp__sass_thread_inst_executed_op_{}_pred_on"
        for tail in (".sum.per_cycle_elapsed", ".sum"):
            parts = [self._raw(stem.format(op) + tail) for op in ("ffma", "fadd", "fmul")]
            total = sum(p or 0.0 for p in parts)
            if total > 0:
                found.setdefault(k.FUSED_SHARE, (parts[0] or 0.0) / total)

    def _ratio(self, part: str, whole: str) -> float | None:
        above, below = self._raw(part), self._raw(whole)
        return None if above is None or not below else min(above / below, 1.0)

    def _total(self, *names: str) -> float | None:
        parts = [self._raw(name) for name in names]
        return None if all(p is None for p in parts) else sum(p or 0.0 for p in parts)

    def _size(self, *names: str) -> float | None:
        for name in names:
            if name in self.metrics:
                return number(*self.metrics[name], Unit.BYTE)
        return None


def _unit_class(unit: str) -> str:
    return "%" if unit == "%" else "/s" if unit.endswith(("/s", "/second")) else ""


def number(text: str, unit: str, wanted: Unit) -> float | None:
    """A cell in SI; None where the cell is empty or a word."""
    cleaned = text.strip()
    if _EUROPEAN.match(cleaned):
        cleaned = cleaned.replace(".", "").replace(",", ".")
    cleaned = cleaned.replace(",", "")
    try:
        value = float(cleaned)
    except ValueError:
        return None
    if value != value:
        return None
    if wanted is Unit.SHARE:
        return value / 100 if unit == "%" else value
    if wanted is Unit.SECOND:
        match = _TIME_UNIT.match(unit)
        return value * _SCALE[match[1]] if match else None
    if wanted in (Unit.BYTE, Unit.BYTE_PER_S):
        match = _BYTE_UNIT.match(unit)
        return value * _SCALE[match[1]] if match else value
    return value


def facts_of(launches: list[Launch], source: Source) -> Iterator[Item]:
    """Facts per kernel: launches of one name and shape are averaged, other shapes stand apart."""
    groups: dict[tuple[object, ...], list[tuple[Launch, dict[Quantity, float | str]]]] = {}
    for launch in launches:
        values = launch.values()
        key = (launch.name, launch.grid, launch.block, values.get(k.REGISTERS), values.get(k.SHARED_BYTES))
        groups.setdefault(key, []).append((launch, values))
    dumb = sorted({m[0].name for group in groups.values() for m in group if m[0].metrics and not _any_number(m[1])})
    if dumb:
        yield Note(f"no counter of {dumb[0][:60]}{' and others' * (len(dumb) > 1)} can be read", source, lost=True)
    seen: dict[str, int] = {}
    for members in groups.values():
        first = members[0][0]
        seen[first.name] = seen.get(first.name, 0) + 1
        label = first.name if seen[first.name] == 1 else f"{first.name} [{_shape(first)}, variant {seen[first.name]}]"
        yield from _group_facts(label, members, source)


def _any_number(values: dict[Quantity, float | str]) -> bool:
    return any(not isinstance(value, str) for value in values.values())


def _shape(launch: Launch) -> str:
    return f"grid {launch.grid or '?'} block {launch.block or '?'}"


def _group_facts(
    label: str, members: list[tuple[Launch, dict[Quantity, float | str]]], source: Source
) -> Iterator[Fact]:
    scope = Scope(kernel=label)
    first = members[0][0]
    place = Source(source.file, first.where)
    quantities = dict.fromkeys(q for _, values in members for q in values)
    for quantity in quantities:
        found = [values[quantity] for _, values in members if quantity in values]
        numbers = [float(v) for v in found if not isinstance(v, str)]
        value = sum(numbers) / len(numbers) if numbers else found[0]
        yield Fact(quantity, value, place, scope, samples=len(found))
    times = [float(values[k.TIME]) for _, values in members if k.TIME in values]
    if times:
        yield Fact(k.TOTAL_TIME, sum(times), place, scope, samples=len(times))
    if first.capability:
        yield Fact(k.CAPABILITY, first.capability, place, scope)
    if first.device:
        yield Fact(k.DEVICE, first.device, place, scope)
    estimates = [(float(s), n) for n, _, kind, s in first.rules if _is_number(s) and kind != _VENDOR_LOCAL]
    if estimates:
        best = max(estimates)
        yield Fact(k.VENDOR_RULE, best[1], place, scope)
        yield Fact(k.VENDOR_SPEEDUP, best[0] / 100, place, scope)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
