"""A value that somebody else wrote, as a number if it is one: never an exception, whatever stands there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

NUMBER = r"\d{1,30}(?:\.\d{0,30})?(?!\.?\d)"  # the pattern of one: 1.2.3 is a version or an address
INDEX = r"\d{1,18}"  # of a line, a rank or a card: Python refuses to read thousands of digits
MOST_SAMPLES = 1e15
LARGEST_WHOLE = 1 << 62  # counts, ranks and indices beyond this are damage, and no array holds them


def number_of(value: Any) -> float | None:
    """A number or the text of one; truth values, NaN, and numbers of hundreds of digits are none. Infinity is itself."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if found == found else None


def whole_of(value: Any) -> int | None:
    """The same for what counts or names places."""
    found = number_of(value)
    return int(found) if found is not None and abs(found) < LARGEST_WHOLE else None


def count_of(value: float) -> int:
    """How many samples a number stands for: none where it is no number, and never more than anybody takes."""
    return int(min(max(value, 0.0), MOST_SAMPLES)) if value == value else 0


_SECONDS = {
    "ns": 1e-9, "us": 1e-6, "usec": 1e-6, "µs": 1e-6, "ms": 1e-3, "msec": 1e-3, "s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0,
}  # fmt: skip


def seconds_in(words: Sequence[str]) -> float | None:
    """What turns the numbers of a column into seconds, as the words of its title say."""
    return next((_SECONDS[word] for word in reversed(words) if word in _SECONDS), None)


def columns_of(names: Sequence[str], rows: Sequence[Sequence[object]]) -> dict[str, NDArray[Any]]:
    """Rows of at least one, as columns of a table."""
    return {name: np.array(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}
