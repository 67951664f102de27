"""The moment that a line between pages names, in seconds."""

from __future__ import annotations

import re

from stallwise.readers.shapes.clock import clock_of as clock_in_line

_EPOCH = re.compile(r"(?<![\d.])(1[4-9]\d{8}(?:\.\d+)?)(?:\d{3})?(?![\d.])")


def clock_of(text: str) -> float | None:
    """Since 1970 where such a count is printed, else of the calendar or since midnight; None without a clock."""
    if found := _EPOCH.search(text):
        return float(found[1])
    return clock_in_line(text)
