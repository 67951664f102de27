"""stallwise names the stage that stalls, proves it, and says what fixing it is worth.

Nothing heavy is imported here: the part that runs inside a training job is standard library only, and the doctor and
the planner load when first used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stallwise.instrument import gauge, mark, recording, span, start, step, steps, stop

if TYPE_CHECKING:
    from stallwise.findings.comparison import Comparison
    from stallwise.findings.diagnosis import Diagnosis
    from stallwise.probe.timing import Timing

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


# Plain functions rather than a module `__getattr__`: with one, every `stallwise.span` takes a third longer.


def diagnose(*paths: str, **options: Any) -> Diagnosis:
    """Reads artifacts and says what stalls; see stallwise.doctor.examine.diagnose for the options."""
    from stallwise.doctor.examine import diagnose as answer

    return answer(*paths, **options)


def compare(*bundles: Any, **options: Any) -> Comparison:
    """Says what changed between two bundles; see stallwise.doctor.compare.compare."""
    from stallwise.doctor.compare import compare as answer

    return answer(*bundles, **options)


def bench(fn: Callable[..., object], *inputs: Any, **options: Any) -> Timing:
    """Times an operation properly; see stallwise.probe.timing.bench."""
    from stallwise.probe.timing import bench as answer

    return answer(fn, *inputs, **options)
