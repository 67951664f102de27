"""The record file that one rank appends to: parsed into columns, whatever the state of its last line."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stallwise.readers._cells import whole_of

STAGES = ("batch_wait", "h2d", "forward", "backward", "gradient_sync", "optimizer", "replay")
WARM_STEPS = 5  # compile, autotune and allocator warm-up end within a few steps
MIN_STEADY = 5
OWN_GAUGES = {
    "gpu_memory_bytes", "gpu_reserved_bytes", "gpu_peak_bytes", "pinned_memory_bytes", "host_memory_bytes",
    "children_memory_bytes", "shared_memory_bytes",
}  # fmt: skip
COLLECTION = "gc"
PARTS = ("checkpoint", COLLECTION, "evaluation")  # of side work
IN_STEP = {*STAGES, "checkpoint", "evaluation"}  # what never overlaps
AFTER = "after"  # a step that nothing traced, with the device's tracer still attached
PER_STEP = (
    "step",
    "time_s",
    "duration_s",
    "host_s",
    "span_s",
    "elsewhere_s",
    "gauges",
    "window",
    "boundary",
)  # of a record
LONGEST_S = 1e12  # thirty thousand years


@dataclass(frozen=True, slots=True)
class Window:
    """Steps that a profiler traced, and what starting and stopping it took beside them."""

    kind: str
    first: int
    last: int
    start_s: float
    stop_s: float


@dataclass(frozen=True, slots=True)
class Sample:
    """Where the training thread was at an instant, and in which stage; None is side work."""

    time_s: float
    stack: int
    stage: str | None


@dataclass
class RankRecord:
    """What one rank wrote. Stages of a step never overlap; spans of the user's hold all that lies in them."""

    rank: int = 0
    world: int = 1
    host: str = ""
    host_memory: int = 0  # bytes that the host has, or its control group may take; 0: unknown
    version: int = 1
    step: list[int] = field(default_factory=list)
    time_s: list[float] = field(default_factory=list)
    duration_s: list[float] = field(default_factory=list)
    host_s: list[dict[str, float]] = field(default_factory=list)  # by stage and part of side work
    span_s: list[dict[str, float]] = field(default_factory=list)  # by the user's own names, and the garbage collector
    elsewhere_s: list[dict[str, float]] = field(default_factory=list)  # spans of other threads meanwhile
    device_s: dict[int, dict[str, float]] = field(default_factory=dict)
    device_span_s: dict[int, dict[str, float]] = field(default_factory=dict)
    device_duration_s: dict[int, float] = field(default_factory=dict)  # from border to border on the device
    gauges: list[dict[str, float]] = field(default_factory=list)
    marks: list[tuple[int, str, str]] = field(default_factory=list)
    stacks: list[tuple[int, float, float, str]] = field(default_factory=list)  # step, time, silence, text
    ended: str = ""  # empty: still running, or cut off
    environment: dict[str, str] = field(default_factory=dict)
    lost_lines: int = 0
    pid: int = 0
    window: list[str | None] = field(default_factory=list)  # what traced each step; None: nothing did
    boundary: list[str] = field(default_factory=list)  # what showed that each step had ended
    windows: list[Window] = field(default_factory=list)
    on_device_steps: int = 0  # for how many steps the device's times stand
    lines: dict[int, str] = field(default_factory=dict)  # of the program, by number
    frames: dict[int, list[str]] = field(default_factory=dict)  # stacks by number, innermost line first
    samples: list[Sample] = field(default_factory=list)
    grows: list[dict[str, Any]] = field(default_factory=list)  # containers that gained elements while memory grew
    counted: dict[int, int] = field(default_factory=dict)  # how often each stack was seen from outside, without times
    looked_s: float = 0.0  # how long they were looked for
    memory: tuple[list[float], list[float]] = ([], [])  # seconds and bytes, as seen from outside
    script: str = ""  # the program's file, where it was looked at from outside

    def steady(self) -> RankRecord:
        """The same record without warm-up and without the steps that a profiler slowed.

        A full window that was taken twice showed warm-up the first time, so what came before it is warm-up, too.
        """
        warm = min(WARM_STEPS, len(self.step) // 4)
        full = [w for w in self.windows if w.kind == "full"]
        warm_to = full[0].last if len(full) > 1 else -1
        profiled = [_range(note) for _, name, note in self.marks if name == "profiled"]
        window = self.window or [None] * len(self.step)  # records of the first version know of neither
        boundary = self.boundary or [""] * len(self.step)
        kind = Counter(boundary).most_common(1)[0][0] if boundary else ""
        keep = [
            i
            for i, n in enumerate(self.step)
            if i >= warm
            and n > warm_to
            and window[i] in (None, AFTER)
            and boundary[i] == kind
            and not any(first - 2 <= n <= last + 1 for first, last in profiled)
        ]
        if len(keep) < MIN_STEADY:
            return self
        whole = replace(self, window=window, boundary=boundary)
        kept: dict[str, Any] = {name: [getattr(whole, name)[i] for i in keep] for name in PER_STEP}
        return replace(whole, **kept)

    def device_step_s(self) -> float:
        """What the stages of a usual untraced step take on the device, one after the other; 0 where it was not asked."""
        kept = self.device_s.keys() & set(self.step)
        took = [sum(s for name, s in self.device_s[n].items() if name in STAGES) for n in kept]
        return float(np.median(took)) if took else 0.0

    def untraced_s(self) -> list[float]:
        """Durations of steps as they are without any tracer; of those with one attached only where there are no others."""
        clean = [d for d, w in zip(self.duration_s, self.window, strict=True) if w is None]
        after = [d for d, w in zip(self.duration_s, self.window, strict=True) if w == AFTER]
        return clean if len(clean) >= MIN_STEADY else clean + after

    @property
    def on_device(self) -> bool:
        """Device times are known for most steps."""
        return self.on_device_steps > 0.5 * max(len(self.step) - 25, 1)

    def stage(self, name: str) -> NDArray[np.float64]:
        """Seconds of a stage for every step: the device's where known, else the host's; 0 where it did not run.

        A step that was not stamped is taken to be like the last one before it that was.
        """
        if self.on_device:
            stamped = self._stamped()
            return np.array([self.device_s[n].get(name, 0.0) if n is not None else 0.0 for n in stamped])
        return np.array([stages.get(name, 0.0) for stages in self.host_s])

    def span(self, name: str) -> NDArray[np.float64]:
        """Seconds of a span of the user's for every step, on the same clock as the stages; 0 where it did not run."""
        if not self.on_device:
            return np.array([spans.get(name, 0.0) for spans in self.span_s])
        spans, stages = self.device_span_s, self.device_s
        stamped = self._stamped()
        return np.array(
            [spans.get(n, {}).get(name, stages[n].get(name, 0.0)) if n is not None else 0.0 for n in stamped]
        )

    def _stamped(self) -> list[int | None]:
        """For every step the last one up to it that has the device's times; None before the first."""
        stamped = sorted(self.device_s.keys() & set(self.step) or self.device_s)
        last = [bisect_right(stamped, n) - 1 for n in self.step]
        return [stamped[i] if i >= 0 else None for i in last]

    def collections(self) -> NDArray[np.float64]:
        """Seconds of Python's garbage collector for every step: the host's, whatever stage it fell into."""
        return np.array([spans.get(COLLECTION, 0.0) for spans in self.span_s])

    def spans_of_the_user(self) -> list[str]:
        """Names that the user gave; one of a stage's where other stages lie in it, too."""
        return sorted({name for spans in self.span_s for name in spans} - {COLLECTION})

    def spans_elsewhere(self) -> list[str]:
        """Names of spans that other threads than the training one had open."""
        return sorted({name for spans in self.elsewhere_s for name in spans})

    def gauges_of_the_user(self) -> list[str]:
        """Numbers that the user recorded; the recorder's own are bytes of memory."""
        return sorted({name for values in self.gauges for name in values} - OWN_GAUGES)

    def has_gauge(self, name: str) -> bool:
        """Whether any step recorded this number."""
        return any(name in values for values in self.gauges)

    def gauge(self, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Steps at which a number was recorded, and its values."""
        known = [(n, values[name]) for n, values in zip(self.step, self.gauges, strict=True) if name in values]
        at_step, recorded = zip(*known, strict=True)
        return np.array(at_step, dtype=np.float64), np.array(recorded, dtype=np.float64)

    def side(self) -> NDArray[np.float64]:
        """What no stage covers, with the parts of side work that have names: the rest of a step on the same clock."""
        covered = sum((self.stage(name) for name in STAGES), np.zeros(len(self.step)))
        rest: NDArray[np.float64] = np.maximum(self.whole() - covered, 0.0)
        return rest

    def whole(self) -> NDArray[np.float64]:
        """Seconds of every step on the clock of its stages: the device's from border to border where it was stamped."""
        host = np.array(self.duration_s)
        if not self.on_device or not self.device_duration_s:
            return host
        stamped = self._stamped()
        return np.array(
            [self.device_duration_s.get(n, h) if n is not None else h for n, h in zip(stamped, host, strict=True)]
        )


def parse(lines: Iterable[str | bytes]) -> RankRecord:
    """Reads what is whole; a torn or foreign line is counted and left out."""
    record = RankRecord()
    for line in lines:
        try:
            entry = json.loads(line)
            _take(record, entry)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            if line.strip():
                record.lost_lines += 1
    return record


def _range(note: str) -> tuple[int, int]:
    """The steps of a mark like "steps 10 to 13"."""
    numbers = [n for word in note.split() if word.isdigit() and (n := whole_of(word)) is not None]
    return (numbers[0], numbers[-1]) if numbers else (-1, -1)


def _whole(value: Any) -> int:
    """A count or an identity; whatever else stands there spoils its line."""
    found = whole_of(value)
    if found is None:
        raise ValueError(f"{value!r} counts nothing")
    return found


def _seconds(value: Any) -> float:
    """The same for times: no job has one without end."""
    found = float(value)
    if not abs(found) < LONGEST_S:
        raise ValueError(f"{value!r} is no time")
    return found


def _take(record: RankRecord, entry: dict[str, Any]) -> None:
    kind = entry["k"]
    if kind == "run":
        record.rank, record.world = _whole(entry["rank"]), _whole(entry["world"])
        record.host, record.environment = str(entry.get("host", "")), dict(entry.get("env", {}))
        record.version, record.pid = _whole(entry["v"]), _whole(entry.get("pid", 0))
        record.host_memory, record.script = _whole(entry.get("host_memory", 0)), str(entry.get("script", ""))
        record.ended = ""  # a restarted job appends to the same file
    elif kind == "step":
        stages = {str(k): _seconds(v) for k, v in entry["s"].items()}
        spans = {str(k): _seconds(v) for k, v in entry.get("u", {}).items()}
        others = {str(k): _seconds(v) for k, v in entry.get("o", {}).items()}
        spans |= {name: stages.pop(name) for name in list(stages) if name not in IN_STEP}  # before version 3
        gauges = {str(k): float(v) for k, v in entry.get("m", {}).items()}
        number, time_s, duration_s = _whole(entry["n"]), _seconds(entry["t"]), _seconds(entry["d"])
        record.step.append(number)  # from here on nothing can fail: a step has all its columns, or none
        record.time_s.append(time_s)
        record.duration_s.append(duration_s)
        record.host_s.append(stages)
        record.span_s.append(spans)
        record.elsewhere_s.append(others)
        record.gauges.append(gauges)
        record.window.append(str(entry["window"]) if entry.get("window") else None)
        record.boundary.append(str(entry.get("b", "")))
    elif kind == "gpu":
        number = _whole(entry["n"])
        stages = {str(k): _seconds(v) for k, v in entry["g"].items()}
        spans = {str(k): _seconds(v) for k, v in entry.get("u", {}).items()}
        spans |= {name: stages.pop(name) for name in list(stages) if name not in IN_STEP}
        took_s, stands_for = _seconds(entry["d"]) if "d" in entry else None, _whole(entry.get("of", 1))
        record.device_s[number], record.device_span_s[number] = stages, spans
        if took_s is not None:
            record.device_duration_s[number] = took_s
        record.on_device_steps += stands_for
    elif kind == "mark":
        record.marks.append((_whole(entry["n"]), str(entry["name"]), str(entry.get("note", ""))))
    elif kind == "stack":
        record.stacks.append(
            (_whole(entry["n"]), _seconds(entry["t"]), _seconds(entry.get("silent_s", 0)), str(entry["text"]))
        )
    elif kind == "window":
        costs = _seconds(entry["start_s"]), _seconds(entry["stop_s"])
        record.windows.append(Window(str(entry["window"]), _whole(entry["first"]), _whole(entry["last"]), *costs))
    elif kind == "line":
        record.lines[_whole(entry["id"])] = str(entry["at"])
    elif kind == "frames":
        spelled = entry["stack"] if "stack" in entry else [record.lines.get(_whole(at), "?") for at in entry["lines"]]
        record.frames[_whole(entry["id"])] = [str(line) for line in spelled]
    elif kind == "samples":
        rows = zip(entry["ms"], entry["id"], entry["stage"], strict=False)
        record.samples += [Sample(_seconds(entry["t"]) + ms / 1e3, _whole(stack), stage) for ms, stack, stage in rows]
    elif kind == "counted":
        record.counted = {
            _whole(stack): _whole(count) for stack, count in zip(entry["id"], entry["count"], strict=False)
        }
        record.looked_s = _seconds(entry.get("seconds", 0.0))
    elif kind == "memory":
        record.memory = [_seconds(t) for t in entry["s"]], [float(_whole(size)) for size in entry["bytes"]]
    elif kind == "grows":
        texts = {k: str(entry[k]) for k in ("name", "of", "what")}
        record.grows.append({**texts, **{k: _whole(entry[k]) for k in ("gained", "steps", "bytes")}})
    elif kind == "end":
        record.ended = str(entry.get("why", "exit"))
