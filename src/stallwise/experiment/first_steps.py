"""What the first steps show: which part of a step each stage takes, and in which order trials are made."""

from __future__ import annotations

import json
import statistics
from typing import Any, Dict, List, Optional, Sequence

from stallwise.experiment.change import Change
from stallwise.experiment.verdict import Verdict
from stallwise.recorder import schema

LOOKED_BACK = 1 << 16  # bytes at the end of the record: some hundred steps
STEPS = 20  # the last untraced ones
ONCE_S = 30.0  # a compiler's one-off part
PAIRS_S = 6.0  # what the blocks of a trial take that shows a large gain
# Of what a trial usually saves, where the diagnosis did not name its cause: of 16 such trials in nine programs on an H200 one
# was faster.
UNNAMED = 0.1


def stage_shares(recorder: Any) -> Dict[str, float]:
    """The part of a step that each stage takes on the host, from this process's own record; {} where there is none."""
    try:
        recorder.writer.flush()
        with open(recorder.writer.path, "rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - LOOKED_BACK))
            lines = file.read().splitlines()
    except (OSError, AttributeError):
        return {}
    steps: List[Dict[str, Any]] = []
    for line in lines:
        if line.startswith(b'{"k":"step"'):
            try:
                steps.append(json.loads(line))
            except ValueError:
                continue  # torn
    steps = [s for s in steps if s.get("d", 0) > 0 and "window" not in s][-STEPS:]
    found: Dict[str, float] = {}
    for stage in schema.STAGES:
        parts = [s.get("s", {}).get(stage, 0.0) / s["d"] for s in steps]
        if any(parts):
            found[stage] = min(1.0, statistics.median(parts))
    return found


def expected(change: Change, scene: Any, verdict: Verdict) -> float:
    """The part of a step that a trial is expected to save: by the diagnosis where it names a cause of the trial."""
    named = [verdict.shares[cause] for cause in change.causes if cause in verdict.shares]
    if named:
        return max(named)
    usual = change.expects(scene)
    return usual * UNNAMED if verdict.known and change.causes else usual


def proof_of(changes: Sequence[Change], scene: Any, verdict: Verdict, seconds: float) -> Optional[Change]:
    """The verdict's own trial: of the first cause that has one, the one that takes the cause away, else the most specific.

    One whose one-off part alone would take the time is none.
    """
    for cause, share in verdict.shares.items():
        if share <= 0:
            continue
        own = [c for c in changes if cause in c.causes and (not c.costly or seconds > 2 * ONCE_S)]
        if own:
            return min(own, key=lambda c: (not c.removes, c.causes.index(cause), c.costly, -c.expects(scene), c.name))
    return None


def ordered(changes: Sequence[Change], scene: Any, verdict: Verdict, seconds: float) -> List[Change]:
    """The verdict's own trial, then what is expected to save most for each second that its trial takes."""
    first = proof_of(changes, scene, verdict, seconds)

    def worth(change: Change) -> float:
        return expected(change, scene, verdict) / (PAIRS_S + (ONCE_S if change.costly else 0.0))

    return sorted(changes, key=lambda change: (change is not first, -worth(change), change.name))
