"""speedscope profiles (py-spy record -f speedscope, and others): the host's stacks, and where most samples stand."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Note, Source
from stallwise.units import Unit, show

FORMAT = "speedscope profile"
EXCLUSIVE = True
_SCHEMA = b"speedscope.app/file-format-schema.json"
_SECONDS = {"seconds": 1.0, "milliseconds": 1e-3, "microseconds": 1e-6, "nanoseconds": 1e-9}


def recognises(name: str, head: bytes) -> bool:
    """Its schema."""
    return _SCHEMA in head


def read(artifact: Artifact) -> Iterator[Item]:
    """The longest thread and its busiest line: what the host did, and nothing about a GPU."""
    try:
        document = json.loads(artifact.text())
        frames = document["shared"]["frames"]
        sampled = [p for p in document["profiles"] if p.get("type") == "sampled"]
        threads = [(_time(p), p) for p in sampled]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableInput(f"{artifact.name} is no whole speedscope profile", hint="record it again") from error
    source = Source(artifact.name)
    if not threads:
        yield Note("a speedscope profile without samples", source)
        return
    whole, longest = max(threads, key=lambda pair: pair[0])
    told = f"stacks of the host for {show(whole, Unit.SECOND)}" if whole else "stacks of the host"
    yield Note(f"{told}: they say nothing about the GPU; record a profiler trace beside them", source)
    busiest = _busiest(longest, frames)
    if busiest:
        yield Note(busiest, source)


def _time(profile: dict[str, Any]) -> float:
    scale = _SECONDS.get(str(profile.get("unit")), 0.0)
    return scale * sum(w for w in profile.get("weights", ()) if isinstance(w, (int, float)))


def _busiest(profile: dict[str, Any], frames: list[Any]) -> str:
    """The line on top of most samples, by their weights."""
    found: Counter[str] = Counter()
    for stack, weight in zip(profile.get("samples", ()), profile.get("weights", ()), strict=False):
        if isinstance(stack, list) and stack and isinstance(stack[-1], int) and 0 <= stack[-1] < len(frames):
            top = frames[stack[-1]]
            place = f"{top.get('file') or '?'}:{top.get('line') or 0}" if isinstance(top, dict) else "?"
            found[f"{place} {top.get('name', '') if isinstance(top, dict) else ''}"] += weight
    whole = sum(found.values())
    if not whole:
        return ""
    name, most = found.most_common(1)[0]
    return f"its busiest line is {name}: {most / whole:.0%} of the longest thread {profile.get('name', '')}".rstrip()
