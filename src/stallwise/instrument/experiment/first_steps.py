"""What the first steps say: which part of a step each stage takes, and so in which order trials are made."""

from __future__ import annotations

import json
import statistics
from typing import Any, Dict, List, Sequence

from stallwise.instrument import schema
from stallwise.instrument.experiment.change import Change

LOOKED_BACK = 1 << 16  # bytes at the end of the record: some hundred steps
STEPS = 20  # the last untraced ones
ONCE_S = 30.0  # a compiler's one-off part
PAIRS_S = 6.0  # what the blocks of a trial take that shows a large gain


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


def ordered(changes: Sequence[Change], scene: Any) -> List[Change]:
    """What is expected to save most for each second that its trial takes comes first."""

    def worth(change: Change) -> float:
        return change.expects(scene) / (PAIRS_S + (ONCE_S if change.costly else 0.0))

    return sorted(changes, key=lambda change: (-worth(change), change.name))
