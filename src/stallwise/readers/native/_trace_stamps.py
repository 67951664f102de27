"""Time stamps as they are written, many at once.

A stamp has 16 digits and a fraction, more than a decoder's quick way through a number takes; one by one they cost as much as the rest
of an event. Stamps of one block have the same length but for a few, so that their digits are a table of bytes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Raw
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bytes = NDArray[np.uint8]

_COMMA, _DOT, _ZERO = 44, 46, 48
_MOST_DIGITS = 16  # before the point: until the year 2255 each partial sum is a whole number that a float holds exactly
_WHOLE = 10.0 ** np.arange(_MOST_DIGITS - 1, -1, -1)
_FRACTION = 10.0 ** -np.arange(1, 10)


def stamps_us(written: Sequence[Any]) -> Floats:
    """The numbers; NaN for what is none."""
    joined = np.frombuffer(b",".join((*written, b"")), dtype=np.uint8)
    ends = np.flatnonzero(joined == _COMMA)
    if len(ends) != len(written):  # a comma inside of one
        return _one_by_one(written)
    widths = np.diff(ends, prepend=-1) - 1
    if len(widths) and (widths == widths[0]).all():
        return _of_one_width(joined.reshape(len(widths), -1)[:, :-1], written)
    found = np.full(len(written), np.nan)
    for width in np.unique(widths).tolist():
        rows = np.flatnonzero(widths == width)
        digits = joined[(ends[rows] - width)[:, None] + np.arange(width)]
        found[rows] = _of_one_width(digits, [written[at] for at in rows.tolist()])
    return found


def _of_one_width(digits: Bytes, written: Sequence[Any]) -> Floats:
    """Lines of bytes; where they are anything but digits around a point in the same place, one by one."""
    dots = digits[:1] == _DOT
    point = int(dots.argmax()) if dots.any() else digits.shape[1]
    fraction = digits[:, point + 1 :]
    regular = 0 < point <= _MOST_DIGITS and fraction.shape[1] <= len(_FRACTION)
    if not regular or not (digits[:, point : point + 1] == _DOT).all():
        return _one_by_one(written)
    whole, part = digits[:, :point] - _ZERO, fraction - _ZERO  # what lies below zero's sign wraps round to above nine
    if (whole > 9).any() or (part > 9).any():
        return _one_by_one(written)
    exact: Floats = whole @ _WHOLE[-point:]
    return exact + part @ _FRACTION[: part.shape[1]] if part.shape[1] else exact


def _one_by_one(written: Sequence[Any]) -> Floats:
    return np.array([stamp_us(w) for w in written], dtype=np.float64)


def stamp_us(written: Any) -> float | None:
    """One number, quoted or not; None for what is none."""
    text = bytes(written) if isinstance(written, Raw) else written
    try:
        return float(json.loads(text))
    except (TypeError, ValueError, RecursionError, OverflowError):
        return None
