"""Calls back as soon as somebody imports a module; the import itself is the ordinary one."""

from __future__ import annotations

import sys
from typing import Any, Callable

from stallwise.recorder.error_origin import quietly

WHOLE = {
    "torch": "optim",
    "jax": "jit",
    "torch._dynamo": "optimize",
}  # what a module has when its own import has come to an end


def after_import(name: str, then: Callable[[Any], None]) -> None:
    """Calls `then(module)` now, or right after the module's import."""
    module = sys.modules.get(name)
    if module is not None and hasattr(module, WHOLE.get(name, "__name__")):
        quietly(then, module)
        return
    sys.meta_path.insert(0, _Finder(name, then))


class _Finder:
    """A meta-path finder that steps aside at once and runs a callback after the real import."""

    def __init__(self, name: str, then: Callable[[Any], None]) -> None:
        self._name = name
        self._then = then

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        import importlib.util

        spec = importlib.util.find_spec(name)
        loader = getattr(spec, "loader", None)
        if spec is None or loader is None:
            return spec
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            vars(loader).pop("exec_module", None)  # the loader is its own again before the module's first line
            execute(module)
            quietly(self._then, module)

        loader.exec_module = exec_module
        return spec
