"""What the trials of a job print and keep: the job before the first trial, a line for each result, the noise of the blocks."""

from __future__ import annotations

import statistics
from typing import Any, Dict, List

from stallwise.experiment import paired
from stallwise.experiment.results import Result, Results
from stallwise.experiment.verdict import Verdict


def about(scene: Any, recent: List[float], steps: int, noise: float) -> Dict[str, Any]:
    """The job as it is."""
    return {
        "rehearsal": scene.rehearsal,
        "device": scene.device,
        "kind": "training" if scene.trains else "inference",
        "border": scene.recorder.boundaries.kind,
        "step_s": statistics.median(recent),
        "steps_per_block": steps,
        "detectable_ratio": paired.detectable_ratio(noise),
        "torch": str(scene.torch.__version__),
    }


def opening(known: Dict[str, Any], verdict: Verdict) -> str:
    """Printed before the first trial."""
    cause = next(iter(verdict.shares), "")
    return "a step takes %s; blocks of up to %d steps; the smallest gain they can show is about %.1f%%%s" % (
        _time(known["step_s"]),
        known["steps_per_block"],
        100 * (known["detectable_ratio"] - 1),
        "; the first steps show %s" % cause if cause else "",
    )


def line(result: Result) -> str:
    """One result."""
    e = result.estimate
    figures = " %.2fx (%.2f to %.2f)" % (e.ratio, e.low, e.high) if e is not None and e.low > 0 else ""
    return "%-28s %s%s%s" % (result.name, result.state, figures, "  " + result.why if result.why else "")


def noise(out: Results) -> None:
    """What the blocks themselves can show: steps that vary together are noisier than their spread shows beforehand."""
    known = [
        r.more["detectable_ratio"] for r in out.trials if r.estimate is not None and r.more.get("detectable_ratio")
    ]
    if known:
        out.about["detectable_ratio"] = statistics.median(known)


def _time(seconds: float) -> str:
    return "%.3g s" % seconds if seconds >= 1 else "%.3g ms" % (seconds * 1e3)
