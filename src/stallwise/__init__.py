"""stallwise names the stage that stalls, proves it, and says what fixing it is worth.

Nothing heavy is imported here: the part that runs inside a training job is standard library only, and the doctor and
the planner load when first used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stallwise.doctor.findings.comparison import Comparison
    from stallwise.doctor.findings.diagnosis import Diagnosis
    from stallwise.doctor.findings.whatif import WhatIf
    from stallwise.physics.probe.timing import Timing
    from stallwise.planner.search import Plan
    from stallwise.recorder import gauge, mark, recording, span, start, step, steps, stop

__version__ = "0.1.0"
__all__ = [
    "__version__",
    "bench",
    "compare",
    "diagnose",
    "gauge",
    "mark",
    "plan",
    "recording",
    "simulate",
    "span",
    "start",
    "step",
    "steps",
    "stop",
    "whatif",
]


def __getattr__(name: str) -> Any:
    """Loads the verbs of a recording at the first use of one, all at once: the doctor needs none of them.

    Then it goes, and all else here are plain functions: beside a `__getattr__` every `stallwise.span` takes a third longer.
    """
    if name not in _VERBS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from stallwise.recorder import verbs

    found = {verb: getattr(verbs, verb) for verb in _VERBS}
    globals().update(found)
    globals().pop("__getattr__", None)
    return found[name]


_VERBS = ("gauge", "mark", "recording", "span", "start", "step", "steps", "stop")


def diagnose(*paths: str | PathLike[str] | Iterable[str | PathLike[str]], **options: Any) -> Diagnosis:
    """Reads artifacts (texts, Paths, or lists of them) and says what stalls; options: stallwise.doctor.examine.diagnose."""
    from stallwise.doctor.examine import diagnose as answer

    return answer(*paths, **options)


def compare(
    good: str | PathLike[str] | Iterable[str | PathLike[str]], bad: str | PathLike[str] | Iterable[str | PathLike[str]]
) -> Comparison:
    """Says what changed between two bundles, each a path or a list of paths."""
    from stallwise.doctor.compare import compare as answer

    return answer(good, bad)


def plan(model: str, cluster: str, *, seq: int = 4096, global_batch: int = 512, **options: Any) -> Plan:
    """Searches layouts of a model on a cluster such as "64xh100"; options: stallwise.planner.ask.ask_plan."""
    from stallwise.planner.ask import ask_plan

    return ask_plan(model, cluster, seq=seq, global_batch=global_batch, **options)


def simulate(stages: int, microbatches: int, schedule: str = "1f1b", **options: Any) -> dict[str, Any]:
    """Simulates a pipeline schedule and takes its bubble apart; options: stallwise.planner.pipeline.Question."""
    from stallwise.planner.pipeline import Question, answer_pipeline

    return answer_pipeline(Question(stages, microbatches, schedule, **options))


def whatif(trace: str | PathLike[str], changes: Iterable[str] = ()) -> WhatIf:
    """Replays the steps of a trace without what stalls them; changes: stallwise.doctor.whatif.ALL."""
    from stallwise.doctor.whatif import what_if

    return what_if(fspath(trace), changes)


def bench(fn: Callable[..., object], *inputs: Any, **options: Any) -> Timing:
    """Times an operation properly; see stallwise.physics.probe.timing.bench."""
    from stallwise.physics.probe.timing import bench as answer

    return answer(fn, *inputs, **options)
