"""A written value into SI, and what a bare number can only mean."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from stallwise.evidence.flags import flag_of
from stallwise.evidence.quantity import Quantity
from stallwise.late import np
from stallwise.readers.text.name import Name
from stallwise.readers.text.words import listed
from stallwise.units import Unit, readings_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NUMBER = re.compile(
    r"^\s{0,8}[~≈<>]?\s{0,4}([-+]?(?:\d[\d,_]*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)[ \t]{0,8}(.{0,60}?)$"
)
_RANGE = re.compile(r"^(?:-|–|\.\.|to )[ \t]{0,4}~?(\d{1,12}(?:,\d{3})*(?:\.\d{1,12})?)[ \t]{0,4}(.{0,40})$")
SMALLEST_FLOP_RATE = 1e6  # FLOP/s: nobody measures a GPU below; a bare 180 is TFLOP/s
LARGEST_SHARE = 1.5  # a bare share above is in percent
SMALLEST_BYTES = 1e5  # a bare memory below is GiB or MiB
LARGEST_GIB = 1000.0
LONGEST_WORDS = 160
_FROM_NOTHING = (
    Unit.SECOND, Unit.BYTE, Unit.BYTE_PER_S, Unit.FLOP_PER_S, Unit.TOKEN_PER_S, Unit.PER_S, Unit.COUNT, Unit.TOKEN,
)  # fmt: skip
_BETWEEN = {**dict.fromkeys(_FROM_NOTHING, (0.0, math.inf)), Unit.SHARE: (-0.01, 1.2), Unit.FLAG: (0.0, 1.0)}
_WHOLE = (Unit.COUNT, Unit.TOKEN, Unit.FLAG)


def number_in(text: str) -> tuple[float, str] | None:
    """ "120 ms" -> (120, "ms"); None for words."""
    match = _NUMBER.match(text.strip())
    if match is None or len(match[2]) > 40:
        return None
    unit = match[2]
    if (to := _RANGE.match(unit)) is not None and (readings_of(to[2]) or (unit[:1] != "-" and not to[2])):
        ends = float(match[1].replace(",", "").replace("_", "")), float(to[1].replace(",", ""))
        return (sum(ends) / 2, to[2]) if ends[0] <= ends[1] else None  # "3-5 GB/s", "15.8 - 32.0"
    if not readings_of(unit) and readings_of(unit.split(" ")[0]):
        unit = unit.split(" ")[0]  # "405B parameters", "1.5x over eager"
    try:
        return float(match[1].replace(",", "").replace("_", "")), unit
    except ValueError:
        return None


def in_si(named: Name, value: float) -> float:
    """The number as the quantity's unit wants it."""
    if named.inverse:
        return 1.0 / value if value > 0 else float("nan")
    number = value * named.scale
    if named.unit_known:
        return number
    unit = named.quantity.unit
    if unit is Unit.SHARE and number > LARGEST_SHARE:
        return number / 100.0
    if unit is Unit.FLOP_PER_S and 0 < number < SMALLEST_FLOP_RATE:
        return number * 1e12
    if unit is Unit.BYTE and 0 < number < SMALLEST_BYTES:
        return number * (2.0**30 if number < LARGEST_GIB else 2.0**20)
    return number


def all_in_si(named: Name, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same for many numbers of one key."""
    if named.inverse:
        return np.where(values > 0, 1.0 / np.where(values > 0, values, 1.0), np.nan)
    numbers = values * named.scale
    if named.unit_known:
        return numbers
    unit = named.quantity.unit
    if unit is Unit.SHARE:
        return np.where(numbers > LARGEST_SHARE, numbers / 100.0, numbers)
    if unit is Unit.FLOP_PER_S:
        return np.where((numbers > 0) & (numbers < SMALLEST_FLOP_RATE), numbers * 1e12, numbers)
    if unit is Unit.BYTE:
        larger = np.where(numbers < LARGEST_GIB, 2.0**30, 2.0**20)
        return np.where((numbers > 0) & (numbers < SMALLEST_BYTES), numbers * larger, numbers)
    return numbers


def plausible(quantity: Quantity, number: float) -> bool:
    """Whether a number can be this quantity at all."""
    low, high = _BETWEEN.get(quantity.unit, (-math.inf, math.inf))
    whole = quantity.unit not in _WHOLE or number == number // 1
    return math.isfinite(number) and low <= number <= high and whole


def all_plausible(quantity: Quantity, numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The same for many."""
    low, high = _BETWEEN.get(quantity.unit, (-math.inf, math.inf))
    fits = np.isfinite(numbers) & (numbers >= low) & (numbers <= high)
    return fits & (numbers == np.floor(numbers)) if quantity.unit in _WHOLE else fits


def flag_in(text: str) -> float | None:
    """Yes and no in their many words, judgements ("looks fine") among them; None for anything else."""
    if (flag := flag_of(text)) is not None:
        return flag
    plain = text.strip().strip(".!").lower()
    for candidate, begins in ((plain, ""), (plain.split(" ")[0], "_begins")):
        for answer, meant in (("yes", 1.0), ("no", 0.0)):
            if candidate in listed("scopes.toml", "answer", answer + begins):
                return meant
    return None
