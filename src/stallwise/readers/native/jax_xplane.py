"""JAX and XLA profiles as the profiler stores them (`*.xplane.pb`), through the optional package `protobuf`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Source
from stallwise.evidence.timeline import NO_ID
from stallwise.readers.native._trace_columns import Columns
from stallwise.readers.native._trace_events import Args, Event
from stallwise.readers.native._xspace import space_of
from stallwise.readers.native.torch_trace import scope_of

FORMAT = "JAX profile"
EXCLUSIVE = True
AGAIN = "profile again: jax.profiler.trace(folder), and let it finish"
PLANES = (b"/host:", b"/device:")
PICOSECOND_US = 1e-6
MOST_BYTES = 1 << 30


def recognises(name: str, head: bytes) -> bool:
    """A message whose first field is a plane, and planes named as XLA names them."""
    return head[:1] == b"\x0a" and b"\x00" in head[:65536] and any(plane in head for plane in PLANES)


def read(artifact: Artifact) -> Iterator[Item]:
    """One timeline of the streams of all devices and of the host's threads."""
    with artifact.open() as stream:
        data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise UnreadableInput(f"{artifact.name} is larger than {MOST_BYTES:,} bytes", hint="profile fewer steps")
    try:
        space = space_of(data)
    except ValueError as error:
        raise UnreadableInput(f"{artifact.name} is no whole XLA profile: {error}", hint=AGAIN) from error
    columns = Columns()
    for number, plane in enumerate(space.planes):  # their own ids may all be zero
        if plane.name.startswith(("/host:CPU", "/device:")):
            _take(columns, number, plane)
    if not columns.parts:
        raise UnreadableInput(f"{artifact.name} holds no device and no host thread", hint=AGAIN)
    yield columns.finish(Source(artifact.name), scope_of(artifact.name, {}))


def _take(columns: Columns, number: int, plane: Any) -> None:
    """Derived lines (modules, operators, steps) repeat what the streams of a device hold, so streams are preferred."""
    columns.labels[number, None] = plane.name
    names = {entry.key: entry.value.display_name or entry.value.name for entry in plane.event_metadata}
    correlation = next((e.key for e in plane.stat_metadata if e.value.name == "correlation_id"), None)
    streams = [line for line in plane.lines if line.name.startswith("Stream")]
    for line in streams or plane.lines:
        columns.labels[number, line.id] = line.name
        events = [
            Event(
                "X", "", names.get(event.metadata_id, ""), number, line.id,
                line.timestamp_ns * 1e-3 + event.offset_ps * PICOSECOND_US, event.duration_ps * PICOSECOND_US,
                Args(correlation=_stat(event, correlation)),
            )
            for event in line.events
        ]  # fmt: skip
        if events:
            columns.add(events)


def _stat(event: Any, metadata_id: int | None) -> int:
    for stat in event.stats:
        if stat.metadata_id == metadata_id:
            return int(stat.int64_value or stat.uint64_value)
    return NO_ID
