"""A value that somebody else wrote, as a number if it is one: never an exception, whatever stands there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stallwise.errors import UnreadableInput
from stallwise.late import np
from stallwise.units import Unit, readings_of

if TYPE_CHECKING:
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


def seconds_in(words: Sequence[str]) -> float | None:
    """What turns the numbers of a column into seconds, as the words of its title say; "min" is the least of something."""
    every = (factor for word in reversed(words) for unit, factor in readings_of(word) if unit is Unit.SECOND)
    return next((factor for factor in every if factor <= 1.0), None)


def json_of(data: str | bytes, name: str, hint: str) -> Any:
    """The tree of a JSON document; a sentence for the user where it is none."""
    import msgspec

    try:
        return msgspec.json.decode(data if isinstance(data, bytes) else data.encode())
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UnreadableInput(f"{name} is damaged JSON: {error}", hint=hint) from error


def objects_under(tree: Any, key: str) -> list[dict[str, Any]]:
    """The objects of the list under a key; none where there is no such list."""
    found = tree.get(key) if isinstance(tree, dict) else None
    return [x for x in found if isinstance(x, dict)] if isinstance(found, list) else []


def as_columns(rows: Sequence[Mapping[str, float]]) -> dict[str, NDArray[np.float64]]:
    """Rows of named numbers as columns, NaN where a row is silent."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: np.array([row.get(name, np.nan) for row in rows]) for name in names}
