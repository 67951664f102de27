"""What a profiler costs: seconds of the host for each event it records, and of the device for each piece of work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import exp, log
from pathlib import Path
from typing import Any

from stallwise.tables import parsed


@dataclass(frozen=True, slots=True)
class RecordingCost:
    """Seconds for each recorded event, and between which parts of them the truth lies."""

    operator_s: float
    runtime_call_s: float
    python_frame_s: float
    device_record_s: float
    doubt_low: float
    doubt_high: float


@cache
def _table() -> dict[str, Any]:
    text = (Path(__file__).parent / "measured" / "profiler.toml").read_text(encoding="utf-8")
    table: dict[str, Any] = parsed(text)["torch"]
    return table


def torch_recording(shortest_s: Mapping[str, float]) -> RecordingCost:
    """The cost of the PyTorch profiler on a host whose shortest launches, operators and pauses take this long."""
    table = _table()
    usual: dict[str, float] = table["shortest_s"]
    slower = [log(seconds / usual[name]) for name, seconds in shortest_s.items() if name in usual and seconds > 0]
    pace = exp(sum(slower) / len(slower)) if slower else 1.0
    return RecordingCost(
        operator_s=table["operator_s"] * pace,
        runtime_call_s=table["runtime_call_s"] * pace,
        python_frame_s=table["python_frame_s"] * pace,
        device_record_s=table["device_record_s"],
        doubt_low=table["doubt_low"],
        doubt_high=table["doubt_high"],
    )
