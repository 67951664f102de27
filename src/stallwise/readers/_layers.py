"""Per-layer statistics as one table, from whatever keys a tool writes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from stallwise.evidence.fact import Source, Table
from stallwise.readers.shapes._plainly import plain_words as words_of

KIND = "numerics.layers"
_ROLES = {
    "layer": {"layer", "module", "name", "layer_name", "module_name", "block", "tensor"},
    "x": {"step", "iteration", "context", "context_length", "seq_len", "sequence", "batch_number", "tokens", "length"},
    "amax": {"amax", "abs_max", "absmax", "max_abs", "maxabs", "output_absmax", "abs_maximum"},
    "calibrated": {"calibrated_amax", "calib_amax", "scale_amax", "amax_calibrated", "range", "calibrated_max"},
    "saturated": {"saturated_fraction", "saturated_share", "saturated", "clipped_fraction", "clip_share", "clipped"},
    "zero": {"zero_fraction", "zero_share", "zeros", "underflow_fraction", "flushed_share"},
    "error": {"rel_error", "relative_error", "rel_err", "error", "mse_rel"},
    "dtype": {"dtype", "type", "format"},
}
NUMBERS = ("x", "amax", "calibrated", "saturated", "zero", "error")


def role_of(key: str) -> str | None:
    """Which column of the table a key is."""
    name = "_".join(words_of(key))
    return next((role for role, names in _ROLES.items() if name in names), None)


def is_layer_row(keys: Iterable[str]) -> bool:
    """A row about a layer and some range or error of it."""
    roles = {role_of(k) for k in keys}
    return "layer" in roles and bool(roles & {"amax", "saturated", "zero", "error"})


def table_of(rows: list[dict[str, Any]], source: Source, over: str = "step") -> Table:
    """Rows as columns; what is missing is NaN."""
    columns: dict[str, list[Any]] = {role: [] for role in _ROLES}
    for row in rows:
        named = {role_of(k): v for k, v in row.items()}
        for role in _ROLES:
            value = named.get(role)
            columns[role].append(number(value) if role in NUMBERS else "" if value is None else str(value))
        for key in row:
            if "_".join(words_of(key)) in ("context", "context_length", "seq_len", "sequence", "tokens", "length"):
                over = "context"
    arrays = {role: np.array(v, dtype=np.float64 if role in NUMBERS else object) for role, v in columns.items()}
    return Table(KIND, arrays, source, meta={"over": over})


def number(value: Any) -> float:
    """A cell as a number; words such as inf and nan are themselves."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
