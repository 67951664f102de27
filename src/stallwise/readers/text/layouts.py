"""Layouts that a person compares, each with how it ended: "tp8/dp64 fine, tp4/dp128 -> OOM", "eight-way tensor parallel fits".

A layout is a run of degrees beside each other; how it ended is what stands behind it, before the next layout, else before it.
The one that failed is the run in question and the one that fits, nearest to it, is what was before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from stallwise.evidence.catalog import fabric, stated
from stallwise.evidence.fact import Fact, Scope, Source
from stallwise.evidence.quantity import Quantity
from stallwise.readers.text.words import word_table

AXES: dict[str, Quantity] = {"tp": fabric.TP_SIZE, "dp": stated.DP, "pp": stated.PP}
BESIDE = 24  # characters between the degrees of one layout
CLOSE = 40  # characters before a layout that may speak of it
LARGEST = 1 << 16  # ranks of one axis
BEFORE = "before"
_LED = re.compile(r"(?P<clause>[^,;.\n]{1,40}?)\b(?:at|with|on|under|for|in|@)\s*$", re.IGNORECASE)  # "OOM at tp4"
_SENTENCE = re.compile(r"[.!?](?:\s|$)|\n\s*\n")


@dataclass(slots=True)
class _Layout:
    start: int
    end: int
    degrees: dict[str, int] = field(default_factory=dict)
    works: bool | None = None


def layouts_in(text: str, file: str) -> list[Fact]:
    """The degrees of the layout that failed and of the one that fits; nothing where no two are compared."""
    layouts = list(_layouts(text))
    if len({tuple(sorted(x.degrees.items())) for x in layouts}) < 2:
        return []
    for at, layout in enumerate(layouts):
        behind = text[layout.end : layouts[at + 1].start if at + 1 < len(layouts) else layout.end + 160]
        before = text[layouts[at - 1].end if at else 0 : layout.start]
        led_by = _LED.search(before)
        parts = (led_by["clause"] if led_by else "", *_SENTENCE.split(behind, maxsplit=2)[:2], before[-CLOSE:])
        layout.works = next((found for part in parts if (found := _outcome(part)) is not None), None)
    worked = [x for x in layouts if x.works is True]
    failed = [x for x in layouts if x.works is False]
    for sides, others in ((worked, failed), (failed, worked)):
        if not sides and len(layouts) == 2 and len(others) == 1:  # of two, the one whose end nobody mentions
            sides += [x for x in layouts if x not in others]
    if not worked or not failed:
        return []
    bad = failed[0]
    good = min(worked, key=lambda x: abs(x.degrees.get("tp", 1) - bad.degrees.get("tp", 1)))
    return [
        Fact(AXES[axis], float(degree), Source(file, stated=True), Scope(run=run) if run else Scope())
        for layout, run in ((good, BEFORE), (bad, None))
        for axis, degree in layout.degrees.items()
    ]


def _layouts(text: str) -> Iterator[_Layout]:
    """Degrees within a few characters of each other, each axis once."""
    current: _Layout | None = None
    for match in _degrees().finditer(text):
        axis = next(name for name in AXES if match[f"{name}_key"] or match[f"{name}_after"])
        degree = _number(match[f"{axis}_degree"] or match[f"{axis}_before"])
        if degree is None:
            continue
        beside = current is not None and match.start() - current.end <= BESIDE and axis not in current.degrees
        if current is not None and beside and _outcome(text[current.end : match.start()]) is None:
            current.degrees[axis], current.end = degree, match.end()
            continue
        if current is not None:
            yield current
        current = _Layout(match.start(), match.end(), {axis: degree})
    if current is not None:
        yield current


def _number(written: str) -> int | None:
    value = int(written) if written.isdigit() else word_table("layouts.toml")["number"][written.lower()]
    return value if 0 < value <= LARGEST else None


def _outcome(text: str) -> bool | None:
    """Whether it worked, by the first word that says so."""
    found = _ended().search(text)
    return None if found is None else found["good"] is not None


@cache
def _degrees() -> re.Pattern[str]:
    """ "TP=8", "tp8", "tensor parallelism of eight", "32-way FSDP"."""
    table = word_table("layouts.toml")
    number = r"\d{1,5}|" + "|".join(table["number"])
    parts = []
    for axis in AXES:
        words = "|".join(table["axis"][axis])
        behind = "|".join((*table["axis"][axis], *table["sharded"][axis]))
        parts.append(
            rf"(?P<{axis}_key>(?:{words}))(?:[ _-]?(?:size|degree))?\s{{0,2}}(?:[=:]|of|is)?\s{{0,2}}"
            rf"(?P<{axis}_degree>{number})(?!\.\d|[\d%a-z])"
            rf"|(?<![\w.])(?P<{axis}_before>{number})[- ](?:way )(?P<{axis}_after>(?:{behind}))"
        )
    return re.compile(rf"(?<![a-z])(?:{'|'.join(parts)})", re.IGNORECASE)


@cache
def _ended() -> re.Pattern[str]:
    table = word_table("layouts.toml")["outcome"]
    return re.compile(
        rf"(?<![\w])(?:(?P<bad>{'|'.join(table['bad'])})|(?P<good>{'|'.join(table['good'])}))(?![a-z])", re.IGNORECASE
    )
