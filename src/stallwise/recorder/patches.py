"""Functions and methods of libraries replaced from outside, and put back: nothing of ours ever hangs on the user's objects.

A replacement answers to the name of what it replaces, so that pickling by reference finds it and a process without us
unpickles the original.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, List, Tuple

_MISSING = object()
Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


class Patches:
    """What has been replaced."""

    def __init__(self) -> None:
        self._made: List[Tuple[Any, str, Any, Any]] = []

    def wrap(self, owner: Any, name: str, wrap: Wrap, also: Tuple[Any, ...] = ()) -> Any:
        """Puts `wrap(original)` in the place of `owner.name`, and of every other place that holds the same function."""
        original = getattr(owner, name, None)
        if original is None:
            return None
        ours = wrap(original)
        functools.update_wrapper(ours, original)
        if inspect.isclass(owner):
            ours.__module__, ours.__qualname__, ours.__name__ = owner.__module__, owner.__qualname__ + "." + name, name
        self.put(owner, name, ours)
        for other in also:
            if getattr(other, name, None) is original:
                self.put(other, name, ours)
        return ours

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Sets an attribute; `remove` brings back what was there, or nothing where it was inherited."""
        before = vars(owner).get(name, _MISSING)
        setattr(owner, name, value)
        self._made.append((owner, name, before, value))

    def remove(self) -> None:
        """Brings everything back, last first; what somebody has replaced again stays as it is."""
        while self._made:
            owner, name, before, ours = self._made.pop()
            if vars(owner).get(name, _MISSING) is not ours:
                continue
            if before is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
