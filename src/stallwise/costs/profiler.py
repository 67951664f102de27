"""What a profiler costs: seconds of the host for each event it records, and of the device for each piece of work."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


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
def _table() -> dict[str, float]:
    text = (files("stallwise.costs") / "measured" / "profiler.toml").read_text(encoding="utf-8")
    table: dict[str, float] = tomllib.loads(text)["torch"]
    return table


def torch_recording(launch_s: float | None, shapes: bool) -> RecordingCost:
    """The cost of the PyTorch profiler on a host whose median recorded launch takes this long."""
    table = _table()
    launch = launch_s if launch_s is not None else table["launch_s"]
    excess = max(launch - table["launch_alone_s"], table["least_excess_s"])
    return RecordingCost(
        operator_s=table["operator"] * excess + (table["shapes_s"] if shapes else 0.0),
        runtime_call_s=table["runtime_call"] * excess,
        python_frame_s=table["python_frame"] * excess,
        device_record_s=table["device_record_s"],
        doubt_low=table["doubt_low"],
        doubt_high=table["doubt_high"],
    )
