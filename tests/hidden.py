"""A pytest plugin that hides packages, as on a machine that has none: STALLWISE_HIDE="torch ray" pytest -p tests.hidden"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

HIDDEN = tuple(os.environ.get("STALLWISE_HIDE", "").split())


class WithoutHidden(PathFinder):
    """Finds nothing under a hidden name; an error instead of nothing would differ from a package that is not there."""

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if any(f"{fullname}.".startswith(f"{name}.") for name in HIDDEN):
            return None
        return PathFinder.find_spec(fullname, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = WithoutHidden  # type: ignore[call-overload]
