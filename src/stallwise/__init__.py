"""stallwise names the stage that stalls, proves it, and says what fixing it is worth.

Nothing heavy is imported here: the part that runs inside a training job is standard library only, and the doctor and
the planner load when first used.
"""

from __future__ import annotations

from stallwise.instrument import gauge, mark, recording, span, start, step, steps, stop

__version__ = "0.1.0"
__all__ = [
    "__version__",
    "bench",
    "compare",
    "diagnose",
    "gauge",
    "mark",
    "recording",
    "span",
    "start",
    "step",
    "steps",
    "stop",
]

_LAZY = {
    "bench": "stallwise.probe.timing",
    "compare": "stallwise.doctor.compare",
    "diagnose": "stallwise.doctor.examine",
}


def __getattr__(name: str) -> object:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'stallwise' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(module), name)
