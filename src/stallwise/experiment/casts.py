"""The job's own autocast contexts: which narrow types, and which stand around a model without doing so.

`autocast(enabled=use_amp)` with the switch off, or one with dtype float32, changes no type: it is no mixed precision. It is
the place where the job would turn it on. A context inside a model, or inside another, protects what is in it and stays.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, List, Set, Tuple

from stallwise.recorder.patches import Patches

Site = Tuple[Any, int]  # code and line that enter a context


class Casts:
    """What was seen of contexts over some steps."""

    def __init__(self, torch: Any) -> None:
        self.narrow = False  # some context computes in fewer bits than float32
        self.idle: Set[Site] = set()  # contexts around a model that leave all types as they are
        self._torch = torch
        self._torch_files = os.path.dirname(os.path.abspath(getattr(torch, "__file__", ""))) + os.sep
        self._open: List[Tuple[Site, bool]] = []

    def look(self, patches: Patches) -> None:
        """Begins to watch."""
        kind = self._torch.amp.autocast_mode.autocast
        self._open.clear()
        patches.wrap(kind, "__enter__", self._entering)
        patches.wrap(kind, "__exit__", self._leaving)

    def model_called(self) -> None:
        """The job calls a model, under the contexts that are open now."""
        if self._open and not self._open[0][1]:
            site = self._open[0][0]
            if not site[0].co_filename.startswith(self._torch_files):  # recomputing restores what the forward pass had
                self.idle.add(site)

    def narrows(self, context: Any) -> bool:
        """Operators under it compute in fewer bits than float32."""
        kind = getattr(context, "fast_dtype", None)
        return bool(getattr(context, "_enabled", False)) and kind is not None and kind.itemsize < 4

    def _entering(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def __enter__(context: Any) -> Any:
            narrow = self.narrows(context)
            self.narrow = self.narrow or narrow
            self._open.append((site_of(sys._getframe(1)), narrow))
            return call(context)

        return __enter__

    def _leaving(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def __exit__(context: Any, *problem: Any) -> Any:
            if self._open:
                self._open.pop()
            return call(context, *problem)

        return __exit__


def site_of(frame: Any) -> Site:
    """The line of the program that enters a context; a decorator's frame belongs to PyTorch."""
    while frame.f_back is not None and frame.f_code.co_filename.endswith("autocast_mode.py"):
        frame = frame.f_back
    return frame.f_code, frame.f_lineno
