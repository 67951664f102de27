"""Tables of steps: CSV or TSV with a header (Lightning's metrics.csv, W&B exports, home-made), one row a step."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import WHOLE, Scope, Series
from stallwise.readers._keys import Meaning, clock_scale, has_unit, is_step, meaning_of, sibling_unit, words_of
from stallwise.readers._steps import StepValues
from stallwise.units import Unit

FORMAT = "table of steps"
MIN_ROWS = 2
MIN_CLOCK_ROWS = 6  # a few steps may rise by chance


def recognises(name: str, head: bytes) -> bool:
    """A header whose first columns count steps or time and of which at least one column is known."""
    line = head[:8192].split(b"\n", 1)[0].decode("utf-8", "replace").strip().lstrip("\ufeff")
    columns = _split(line)
    return len(columns) >= 2 and _axis(columns) is not None and bool(_meanings(columns))


def read(artifact: Artifact) -> Iterator[Item]:
    """Series over the step or the clock."""
    lines = [line for line in artifact.lines() if line.strip()]
    if not lines:
        return
    delimiter = (
        "\t" if lines[0].count("\t") > lines[0].count(",") else ";" if ";" in lines[0] and "," not in lines[0] else ","
    )
    columns = [c.strip().strip('"') for c in lines[0].lstrip("\ufeff").split(delimiter)]
    axis = _axis(columns)
    if axis is None:
        return
    scale = clock_scale(columns[axis])
    over = "step" if is_step(columns[axis]) or scale is None else "time_s"
    values = StepValues(artifact.name, over)
    meanings = _meanings(columns)
    previous, offset = -1.0, 0.0
    for number, row in enumerate(csv.reader(lines[1:], delimiter=delimiter), 2):
        x = _float(row[axis]) if axis < len(row) else None
        if x is None:
            continue
        x = x * (scale or 1.0) if over == "time_s" else x
        if x + offset < previous and over == "step":  # the count starts again with each epoch
            offset = previous + 1 - x
        x = previous = x + offset
        for column, (meaning, scope) in meanings.items():
            value = _float(row[column]) if column < len(row) else None
            if value is not None:
                values.put(meaning, x, value, number, scope)
    elapsed = any("elapsed" in words_of(columns[i]) for i, (m, _) in meanings.items() if m.quantity is run.STEP_TIME)
    yield from (item for item in values.items() if not (elapsed and _is_clock(item)))


def _is_clock(item: Item) -> bool:
    """A column of elapsed seconds that only rises is the clock, not what one step took."""
    if not isinstance(item, Series) or item.quantity is not run.STEP_TIME or len(item.values) < MIN_CLOCK_ROWS:
        return False
    return bool((item.values[1:] > item.values[:-1]).all())


def _split(line: str) -> list[str]:
    for delimiter in ("\t", ",", ";"):
        if delimiter in line:
            return [c.strip().strip('"') for c in line.split(delimiter)]
    return [line]


def _axis(columns: list[str]) -> int | None:
    steps = [i for i, c in enumerate(columns) if is_step(c)]
    if steps:
        return steps[0]
    clocks = [i for i, c in enumerate(columns[:2]) if clock_scale(c) is not None]
    if clocks:
        return clocks[0]
    return next((i for i, c in enumerate(columns[:2]) if "_".join(words_of(c)) in ("epoch", "epochs")), None)


def _meanings(columns: list[str]) -> dict[int, tuple[Meaning, Scope]]:
    """Known columns. Several columns of one quantity are variants of it, told apart by their own words."""
    axis = _axis(columns)
    shared = sibling_unit(columns)
    found = {i: m for i, c in enumerate(columns) if i != axis and (m := _meaning(c, shared)) is not None}
    count = Counter(m.quantity.name for m in found.values())
    result: dict[int, tuple[Meaning, Scope]] = {}
    for i, meaning in found.items():
        twin = count[meaning.quantity.name] > 1
        result[i] = (meaning, Scope(run=" ".join(words_of(columns[i]))) if twin else WHOLE)
    return result


def _meaning(column: str, shared_unit: str) -> Meaning | None:
    meaning = meaning_of(column)
    if meaning is not None and shared_unit and meaning.quantity.unit is Unit.SECOND and not has_unit(column):
        return meaning_of(column, shared_unit)
    return meaning


def _float(text: str) -> float | None:
    try:
        return float(text.strip().rstrip("%"))
    except ValueError:
        return None
