"""One file a trial. A file here is a trial: nothing else has to be told of it."""

from __future__ import annotations

import importlib
import os
from typing import Any, List


def all_changes() -> List[Any]:
    """One new object of every trial, by name."""
    from stallwise.experiment.change import Change

    found = []
    for file in sorted(os.listdir(os.path.dirname(os.path.abspath(__file__)))):
        if file.endswith(".py") and not file.startswith("_"):
            module = importlib.import_module("%s.%s" % (__name__, file[: -len(".py")]))
            for thing in vars(module).values():
                if isinstance(thing, type) and issubclass(thing, Change) and thing.__module__ == module.__name__:
                    found.append(thing())
    return sorted(found, key=lambda change: change.name)
