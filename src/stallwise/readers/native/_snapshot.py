"""The allocator's record played backwards: what was alive when an allocation failed, and the holes between."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from stallwise.readers._patterns import patterns
from stallwise.readers._traceback import is_own

Block = dict[str, Any]

_P = patterns("snapshot")
CATEGORIES = ("weights", "gradients", "optimizer", "activations", "logits", "temporary", "other", "unexplained")
LEAVING = ("free_completed", "free")


@dataclass(slots=True)
class Moment:
    """The device at one point of the record."""

    live: dict[int, Block] = field(default_factory=dict)  # address -> block with size and frames
    reserved_bytes: float = 0.0
    segments: list[tuple[int, int]] = field(default_factory=list)  # address, size

    @property
    def allocated_bytes(self) -> float:
        """All live blocks."""
        return float(sum(b["size"] for b in self.live.values()))

    def holes(self) -> Iterator[int]:
        """Sizes of the free pieces inside reserved segments."""
        starts = sorted((a, int(b["size"])) for a, b in self.live.items())
        keys = [start for start, _ in starts]
        for address, size in self.segments:
            at = address
            inside = starts[bisect_left(keys, address) : bisect_left(keys, address + size)]
            for start, length in inside:
                if start > at:
                    yield start - at
                at = max(at, start + length)
            if at < address + size:
                yield address + size - at


def moment_at(snapshot: dict[str, Any], device: int, index: int | None) -> Moment:
    """The state just before trace entry `index`, or at the end for None: the end is known, the record is undone."""
    now = Moment()
    for segment in snapshot.get("segments") or ():
        if int(segment.get("device", 0)) != device:
            continue
        now.segments.append((int(segment["address"]), int(segment["total_size"])))
        at = int(segment["address"])
        for block in segment.get("blocks") or ():
            at = int(block.get("address", at))
            if str(block.get("state", "")).startswith("active"):
                now.live[at] = {"size": int(block["size"]), "frames": _frames(block)}
            at += int(block["size"])
    trace = next(iter(traces(snapshot)[device:]), [])
    for entry in reversed(trace[index:] if index is not None else []):
        _undo(now, entry)
    _name_from_trace(now, trace[:index] if index is not None else trace)
    now.reserved_bytes = float(sum(size for _, size in now.segments))
    return now


def _undo(now: Moment, entry: dict[str, Any]) -> None:
    action, address, size = entry.get("action"), int(entry.get("addr", 0)), int(entry.get("size", 0))
    if action == "alloc":
        now.live.pop(address, None)
    elif action in LEAVING:
        now.live[address] = {"size": size, "frames": []}
    elif action in ("segment_alloc", "segment_map"):
        now.segments = [s for s in now.segments if s[0] != address]
    elif action in ("segment_free", "segment_unmap"):
        now.segments.append((address, size))


def _name_from_trace(now: Moment, trace: list[dict[str, Any]]) -> None:
    """Blocks put back by undoing a free get the stack of the allocation that made them."""
    for entry in trace:
        if entry.get("action") == "alloc":
            block = now.live.get(int(entry["addr"]))
            if block is not None and int(entry["size"]) == block["size"]:
                block["frames"] = entry.get("frames") or block["frames"]


def _frames(block: Block) -> list[Any]:
    if block.get("frames"):
        return list(block["frames"])
    history = block.get("history") or ()  # snapshots of PyTorch 2.0 keep the stack here
    return list(history[0].get("frames") or ()) if history else []


def traces(snapshot: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The record of each device."""
    return [list(t or ()) for t in snapshot.get("device_traces") or ()]


def python_frames(frames: list[Any]) -> list[tuple[str, int, str]]:
    """File, line and function of the Python part, innermost first."""
    return [
        (file, int(f.get("line", 0)), str(f.get("name", "")))
        for f in frames
        if _says("python", file := str(f.get("filename", "")))
    ]


@lru_cache(1 << 16)
def _says(kind: str, text: str) -> bool:
    """Thousands of stacks share a few hundred frames: each is looked at once."""
    return _P[kind].search(text) is not None


def category_of(frames: list[Any]) -> str:
    """What a block is, by the stack that made it."""

    def shows(kind: str, texts: Iterable[str]) -> bool:
        return any(_says(kind, text) for text in texts)

    if not frames:
        return "unexplained"
    python = python_frames(frames)
    texts, functions = [f"{file} {name}" for file, _, name in python], [name for _, _, name in python]
    native = [str(f.get("name", "")) for f in frames]
    if shows("optimizer", texts):
        return "optimizer"
    if shows("backward", (*texts, *native)):
        return "gradients" if shows("gradient", native) else "temporary"
    if shows("loss", (*texts, *native[:24])) or shows("head", functions[:3]):
        return "logits"
    if "forward" in functions or "_call_impl" in functions:
        return "activations"
    if shows("weights", functions):
        return "weights"
    return "other" if python or len(frames) > 3 else "unexplained"


def place_of(frames: list[Any]) -> str:
    """The innermost line of the user's own code: "model.py:52 forward"."""
    python = python_frames(frames)
    if not python:
        return ""
    file, line, function = next((frame for frame in python if is_own(frame[0])), python[0])
    return f"{file.rsplit('/', 1)[-1]}:{line} {function}"
