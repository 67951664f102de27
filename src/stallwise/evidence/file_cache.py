"""What was made of the texts asked about last: several ask for the table, the tree or the names of one file."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import ParamSpec, TypeVar

KEPT = 2  # a file as it came, and in the clothes that readers know best
Params = ParamSpec("Params")
Result = TypeVar("Result")
_FORGETTING: list[Callable[[], None]] = []


def cached_for_file(make: Callable[Params, Result]) -> Callable[Params, Result]:
    """The same function, which remembers its last answers until the file has been read."""
    kept = lru_cache(maxsize=KEPT)(make)
    _FORGETTING.append(kept.cache_clear)
    return kept  # type: ignore[return-value]


def forget() -> None:
    """Lets go of all of them."""
    for clear in _FORGETTING:
        clear()
