"""What grows while memory grows: the job's containers that gained elements between two looks, with the bytes of a new one.

Looked at twice, and only where the memory of the process or of its allocator has risen at every mark: a look goes through all
that `gc` tracks (some 20 ms for a hundred thousand objects), on the training thread, between two steps.
"""

from __future__ import annotations

import gc
import sys
from collections import deque
from types import ModuleType
from typing import Any, Dict, Iterator, List, Optional, Tuple

KINDS = (list, dict, deque, set)
MOST_NAMED = 3
PACKAGE = "stallwise."  # what we keep ourselves is bounded
MOST_NESTED = 1000  # elements of an element whose bytes are added up
DEPTH = 3
A_STEP = 0.2  # elements a step: what is kept every fifth step or less often is no leak of a hundred megabytes
GRAPH_BYTES = (
    1 << 20
)  # counted for a tensor that carries its graph: what the graph holds is not known, but never little


class Growing:
    """Two looks at the lengths of all containers."""

    def __init__(self) -> None:
        self._lengths: Optional[Dict[int, int]] = None
        self._from = 0

    def look(self, number: int) -> Optional[List[Dict[str, Any]]]:
        """What has grown since the first look; None from the first one itself."""
        if self._lengths is None:
            self._lengths, self._from = {id(o): len(o) for o in _containers()}, number
            return None
        steps, before = max(number - self._from, 1), self._lengths
        self._lengths = None
        grown = []
        for one in _containers():
            gained = len(one) - before.get(id(one), len(one))
            if gained >= A_STEP * steps:
                size, what = _element(one)
                grown.append((gained * size, gained, size, what, one))
        grown.sort(key=lambda entry: entry[0], reverse=True)
        found = [
            {
                "name": _name(one),
                "of": type(one).__name__,
                "gained": gained,
                "steps": steps,
                "bytes": size,
                "what": what,
            }
            for _, gained, size, what, one in grown[:MOST_NAMED]
        ]
        return [entry for entry in found if entry["name"]]


def _containers() -> Iterator[Any]:
    return (o for o in gc.get_objects() if type(o) in KINDS)


def _element(container: Any) -> Tuple[int, str]:
    """Bytes and type of the newest element."""
    if type(container) is dict:
        newest = next(reversed(list(container.values())[-1:]), None)
    else:
        newest = next(iter(container), None) if type(container) is set else container[-1]
    size, graph = _bytes(newest, DEPTH)
    return size, type(newest).__name__ + (" with its graph" if graph else "")


def _bytes(value: Any, depth: int) -> Tuple[int, bool]:
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.Tensor):
        graph = value.grad_fn is not None
        return int(value.element_size() * value.nelement()) + GRAPH_BYTES * graph, graph
    if numpy is not None and type(value) is numpy.ndarray:
        return int(value.nbytes), False
    if depth and type(value) in (list, tuple, dict):
        parts = [_bytes(v, depth - 1) for v in list(value.values() if type(value) is dict else value)[:MOST_NESTED]]
        return sum(p[0] for p in parts) + sys.getsizeof(value), any(p[1] for p in parts)
    if depth and type(value) not in KINDS and isinstance(getattr(value, "__dict__", None), dict):
        size, graph = _bytes(vars(value), depth - 1)
        return size, graph
    return sys.getsizeof(value, 0), False


def _name(container: Any) -> str:
    """As the program calls it: a local variable, an attribute of a class, a name of a module; empty where none holds it."""
    frame = sys._getframe(1)
    while frame is not None:
        if not str(frame.f_globals.get("__name__", "")).startswith(PACKAGE):
            for name, value in list(frame.f_locals.items()):
                if value is container:
                    return name
        frame = frame.f_back  # type: ignore[assignment]
    for holder in gc.get_referrers(container):
        owned = holder if type(holder) is dict else getattr(holder, "__dict__", None)
        name = next((k for k, v in owned.items() if v is container), None) if type(owned) is dict else None
        if type(name) is str:
            owner = holder if type(holder) is not dict else _owner(holder)
            if isinstance(owner, ModuleType):
                return name
            if type(owner).__module__.startswith(PACKAGE):
                return ""
            return "%s.%s" % (type(owner).__name__, name) if owner is not None else name
    return ""


def _owner(namespace: Dict[str, Any]) -> Any:
    holders = (h for h in gc.get_referrers(namespace) if getattr(h, "__dict__", None) is namespace)
    return next(holders, None)
