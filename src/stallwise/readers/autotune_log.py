"""Kernel configurations that were tried and what each took: TRITON_PRINT_AUTOTUNING, Inductor's list of benchmarked configurations,
triton.Config(...) lines; and the rows of a sweep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import autotune as a
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Note, Scope, Source, Table
from stallwise.late import np
from stallwise.readers._cells import number_of
from stallwise.readers._patterns import entries, patterns
from stallwise.units import Unit, factor

FORMAT = "autotune log"
LABELLED = True  # names of settings and kernels
CAPTURE = "TRITON_PRINT_AUTOTUNING=1 python script.py 2> autotune.log"
KIND = "autotune"
BYTES_PER_SPILL = 4.0  # compilers count spilled 32-bit registers
MAX_BYTES = 256 << 20
_P = patterns("autotune")
Row = dict[str, Any]


def recognises(name: str, head: bytes) -> bool:
    """One of the three wordings."""
    start = head.decode("utf-8", "replace")
    return "\0" not in start[:1024] and "traceEvents" not in start[:8192] and _P["wordings"].search(start) is not None


def is_sweep(head: bytes) -> bool:
    """JSON with configuration axes as keys."""
    start = head.lstrip()[:65536].decode("utf-8", "replace")
    return start[:1] in ("{", "[") and "traceEvents" not in start and _P["keys"].search(start) is not None


def read(artifact: Artifact) -> Iterator[Item]:
    """A table of configurations for each tuned kernel."""
    text, source = artifact.text(MAX_BYTES), Source(artifact.name)
    groups: dict[str, list[Row]] = {}
    kernel = ""
    for line in text.splitlines():
        if match := _P["kernel"].search(line):
            kernel = match[1]
        elif match := _P["tried"].search(line):
            groups.setdefault(match[1], []).append(_pairs(match[2]))
        elif match := _P["per_config"].search(line):
            groups.setdefault(kernel, []).append({**_pairs(match[1]), "ms": float(match[2])})
        elif "Skip config" not in line and "best config selected" not in line and (row := _timed(line)):
            groups.setdefault(kernel, []).append(row)
    written = (m.expand(r"\1, \2").replace("'", "").replace('"', "") for m in _P["source"].finditer(text))
    if listed := [_pairs(config) for config in written]:
        groups.setdefault("", []).extend(listed)
    for match in _P["best"].finditer(text) if not groups else ():
        yield Fact(a.BEST_CONFIG, match[3].strip(), source)
        yield Note("the log names the best configuration, not the ones that were tried", source)
    for name, rows in groups.items():
        yield from _items(rows, source, {"kernel": name, "shape": None})


def sweep(whole: Any, source: Source) -> Iterator[Item]:
    """The first list of configurations, and what stands beside it; some nest the axes under "kwargs" or "config"."""
    head: Row = whole if isinstance(whole, dict) else {}
    lists = [[r for r in v if isinstance(r, dict)] for v in (head.values() if head else [whole]) if isinstance(v, list)]
    flat = [{key: v for part in ({}, row, *(p for p in row.values() if isinstance(p, dict))) for key, v in part.items()}
            for row in next(filter(None, lists), [])]  # fmt: skip
    rows = [row for row in flat if any(_P["axis"].match(str(key)) for key in row)]
    meta: Row = {"kernel": str(head.get("kernel", "")), "shape": head.get("shape")}
    for key, value in head.items():
        if (match := _P["library"].match(key)) and (library := number_of(value)) is not None:
            meta.setdefault("library_s", library * _scale(match[1]))
    yield from _items(rows, source, meta) if rows else ()


def _scale(unit: str) -> float:
    return factor(unit, Unit.SECOND) or 1.0


def _timed(line: str) -> Row | None:
    match = _P["timed"].search(line)
    if match is None or not _P["axis_in_line"].search(match[1]):
        return None
    found = {key: float(v) for m in _P["compiled"].finditer(match[3]) for key, v in m.groupdict().items() if v}
    return {**_pairs(match[1]), "ms": float(match[2]), **found}


def _pairs(text: str) -> Row:
    return {key: float(value) for key, value in _P["pair"].findall(text)}


def _items(rows: list[Row], source: Source, meta: Row) -> Iterator[Item]:
    """The table, and what the compiler says of the best configuration."""
    words = entries("autotune")["axis"]
    axes = sorted(
        {key for row in rows for key, v in row.items() if key not in words["never"] and isinstance(v, int | float)}
    )
    times = np.array([next((t * _scale(u) for key, u in words["times"] if (t := _first(row.get(key))) is not None), np.nan)
                      for row in rows])  # fmt: skip
    spills = np.array([_either(row, "nspill", "n_spills") for row in rows])
    columns = {axis: np.array([_either(row, axis) for row in rows]) for axis in axes}
    yield Table(KIND, {**columns, "time_s": times, "spills": spills}, source, meta={"axes": axes, **meta})
    if not np.isfinite(times).any():
        return
    best = int(np.nanargmin(times))
    registers = _either(rows[best], "nreg", "n_regs")
    if registers != registers and not np.isfinite(spills[best]):
        return  # nothing is known of the kernel but its times
    scope = Scope(kernel=meta["kernel"] or "the tuned kernel")
    yield Fact(k.TIME, float(times[best]), source, scope)
    if np.isfinite(spills[best]) and spills[best] > 0:
        yield Fact(k.SPILL_BYTES_PER_THREAD, BYTES_PER_SPILL * float(spills[best]), source, scope)
    if registers == registers:
        yield Fact(k.REGISTERS, registers, source, scope)


def _first(value: Any) -> float | None:
    """A number, or the first of a list: median, then quantiles."""
    return number_of(value[0] if isinstance(value, list) and value else value)


def _either(row: Row, *keys: str) -> float:
    return next((found for key in keys if (found := number_of(row.get(key))) is not None), np.nan)
