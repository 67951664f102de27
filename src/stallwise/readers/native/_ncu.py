"""Nsight Compute launches as facts, whatever page or version they came from.

Every page gives the same thing: per launch, metrics by display name or by counter name, and the tool's own rule texts,
which carry counters that the details page shows nowhere else (busiest pipe, excess sectors, stall shares).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.catalog import quantities
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Note, Scope, Source, Table
from stallwise.evidence.quantity import Quantity
from stallwise.readers._cells import number_of
from stallwise.readers._patterns import patterns
from stallwise.readers.native._ncu_names import counters, derived, displayed, facts_in_rule
from stallwise.units import Unit, factor

_P = patterns("ncu_text")
UNCOUNTED = "kernels without counters"
EMPTY = {"n/a", "nan", "(!) nan", "no data", "(!) n/a"}  # what stands where nothing was measured
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
            if quantity not in found and (counted := self._raw(*names, unit=quantity.unit)) is not None:
                found[quantity] = counted
        for _, text, _, _ in self.rules:
            for measured, ruled in facts_in_rule(text).items():
                found.setdefault(measured, ruled)
        self._derive(found)
        return found

    def add_metric(self, name: str, value: str, unit: str) -> None:
        """Takes a metric. One title stands for a share and for a rate: the key keeps both."""
        both = name == "Memory Throughput" and unit.endswith("/s")
        self.metrics.setdefault(f"{name} " if both else name, (value, unit))

    def _raw(self, *names: str, unit: Unit = Unit.COUNT) -> float | None:
        values = (number(*self.metrics[name], unit) for name in names if name in self.metrics)
        return next((value for value in values if value is not None), None)

    def _derive(self, found: dict[Quantity, float | str]) -> None:
        """Sums and ratios of counters of one launch: still a matter of format, not of cause."""
        for row in derived():
            quantity = quantities()[row["is"]]
            value = self._derived(row, quantity.unit)
            if value is None or (row.get("keep") == "first" and quantity in found):
                continue
            found[quantity] = max(value, float(found.get(quantity, 0.0))) if row.get("keep") == "most" else value
        latency = self._raw("smsp__average_warp_latency_per_inst_issued.ratio", "Warp Cycles Per Issued Instruction")
        if latency:
            found[k.WARP_LATENCY] = latency
            for name in self.metrics:
                match = _P["stall_counter"].match(name)
                stall = k.STALLS.get(match[1]) if match else None
                if stall is not None and (cycles := self._raw(name)) is not None:
                    found[stall] = min(cycles / latency, 1.0)

    def _derived(self, row: dict[str, Any], unit: Unit = Unit.COUNT) -> float | None:
        """One row of the table; None where its counters are not there."""
        other = row.get("unless")
        if other and (share := self._derived(other)) is not None and share > other["above"]:
            return None
        if "beside" in row and self._raw(*row["beside"]) is None:
            return None
        value, whole = self._sum(row["sum"], unit), self._sum(row["over"], unit) if "over" in row else 1.0
        if value is None or not whole:
            return None
        value = min(value / whole, 1.0) if "over" in row else value
        if row.get("percent"):
            return value / 100 or None
        return max(0.0, 1 - value) if row.get("lack") else value

    def _sum(self, parts: list[list[str]], unit: Unit) -> float | None:
        found = [self._raw(*names, unit=Unit.BYTE if unit is Unit.BYTE else Unit.COUNT) for names in parts]
        return None if all(f is None for f in found) else sum(f or 0.0 for f in found)


def _unit_class(unit: str) -> str:
    return "%" if unit == "%" else "/s" if unit.endswith(("/s", "/second")) else ""


def number(text: str, unit: str, wanted: Unit) -> float | None:
    """A cell in SI; None where the cell is empty or a word."""
    cleaned = text.strip()
    if _P["european"].match(cleaned):
        cleaned = cleaned.replace(".", "").replace(",", ".")
    cleaned = cleaned.replace(",", "")
    value = number_of(cleaned)
    if value is None:
        return None
    if wanted is Unit.SHARE:
        return value / 100 if unit == "%" else value
    if wanted is Unit.SECOND:
        scale = factor(unit, Unit.SECOND)
        return None if scale is None else value * scale
    if wanted in (Unit.BYTE, Unit.BYTE_PER_S):
        return value * (factor(unit.partition("/")[0], Unit.BYTE) or 1.0)
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
        empty = sorted(
            {v.strip() for launch in launches for v, _ in launch.metrics.values() if number_of(v) is None} & EMPTY
        )
        says = f": {len(launches)} launches, every metric {' or '.join(empty)}" if empty else ""
        others = f" and of {len(dumb) - 1} more kernels" * (len(dumb) > 1)
        yield Note(f"no counter of {dumb[0][:60]}{others} was collected{says}", source, lost=True)
        yield Table(UNCOUNTED, {"name": np.array(dumb, dtype=object)}, source)
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
    for quantity in dict.fromkeys(q for _, values in members for q in values):
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
    ruled = ((number_of(speedup), rule) for rule, _, kind, speedup in first.rules if kind != _VENDOR_LOCAL)
    if estimates := [(speedup, rule) for speedup, rule in ruled if speedup is not None]:
        best = max(estimates)
        yield Fact(k.VENDOR_RULE, best[1], place, scope)
        yield Fact(k.VENDOR_SPEEDUP, best[0] / 100, place, scope)
