"""TensorBoard event files: scalars by step, read without TensorFlow.

A file is a chain of records (length, checksum, protobuf, checksum). Of the protobuf only four fields matter: the step,
and of each summary value its tag and number.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import pairwise
from statistics import median
from typing import Any

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Note, Source
from stallwise.evidence.reading import Curve, Printed, points_of
from stallwise.readers.native._wire import message

FORMAT = "TensorBoard events"
CAPTURE = "SummaryWriter(log_dir)"
EXCLUSIVE = True
MAX_RECORD_BYTES = 256 << 20
EVENT_WALL, EVENT_STEP, EVENT_SUMMARY = 1, 2, 5
SUMMARY_VALUE, VALUE_TAG, VALUE_SIMPLE, VALUE_TENSOR = 1, 1, 2, 8
TENSOR_DTYPE, TENSOR_CONTENT, TENSOR_FLOATS, TENSOR_DOUBLES = 1, 4, 5, 6
DOUBLE_TYPE = 2


def recognises(name: str, head: bytes) -> bool:
    """The version record that every event file starts with."""
    return b"brain.Event:" in head[:128]


def read(artifact: Artifact) -> Iterator[Item | Printed]:
    """The scalars by their tags."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    with artifact.open() as stream:
        data = stream.read()
    walls: dict[str, list[float]] = {}
    cut = False
    try:
        for number, record in enumerate(_records(data), 1):
            for wall_s, step, tag, value in _scalars(record):
                found.setdefault(tag, []).append((float(step), value, number))
                walls.setdefault(tag, []).append(wall_s)
    except (struct.error, IndexError, ValueError, TypeError, AttributeError):
        cut = True
    if cut:
        yield Note("the event file is cut or damaged; what could be read is used", Source(artifact.name), lost=True)
    if not found:
        yield Note("the event file holds no scalar", Source(artifact.name), lost=cut)
    yield from _pace(walls, artifact.name)
    yield Printed(
        artifact.name, lambda wanted: [Curve(tag, points=points_of(rows)) for tag, rows in found.items()], table=True
    )


def _pace(walls: dict[str, list[float]], file: str) -> Iterator[Item]:
    """How often the most frequent scalar was logged, and over which time."""
    tag = max(walls, key=lambda t: len(walls[t]), default="")
    times = [t for t in walls.get(tag, ()) if t > 0]
    if len(times) > 2:
        source = Source(file, f"scalar {tag}")
        yield Fact(run.LOG_INTERVAL, median(b - a for a, b in pairwise(times)), source, samples=len(times))
        yield Fact(run.LOGGED_TIME, times[-1] - times[0], source, samples=len(times))


def _records(data: bytes) -> Iterator[bytes]:
    place = 0
    while place + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, place)
        if length > MAX_RECORD_BYTES or place + 16 + length > len(data):
            raise ValueError("a record longer than its file")
        yield data[place + 12 : place + 12 + length]
        place += 16 + length


def _scalars(event: bytes) -> Iterator[tuple[float, int, str, float]]:
    summary_values = message(event)
    wall_s = _number(summary_values.get(EVENT_WALL, [b""])[-1], "<d") or 0.0
    step = summary_values.get(EVENT_STEP, [0])[-1]
    for value in (
        v for summary in summary_values.get(EVENT_SUMMARY, ()) for v in message(summary).get(SUMMARY_VALUE, ())
    ):
        fields = message(value)
        tag = fields.get(VALUE_TAG, [b""])[-1].decode("utf-8", "replace")
        numbers = [_number(v, "<f") for v in fields.get(VALUE_SIMPLE, ())]
        numbers += [_tensor(message(v)) for v in fields.get(VALUE_TENSOR, ())]
        if tag and numbers and numbers[-1] is not None:
            yield wall_s, step if step < 1 << 63 else step - (1 << 64), tag, numbers[-1]


def _tensor(fields: dict[int, list[Any]]) -> float | None:
    """Of a tensor that holds one number; pictures and histograms hold more."""
    wide = fields.get(TENSOR_DTYPE) == [DOUBLE_TYPE]
    forms = (TENSOR_FLOATS, "<f"), (TENSOR_DOUBLES, "<d"), (TENSOR_CONTENT, "<d" if wide else "<f")
    summary_values = (_number(value, form) for field, form in forms for value in fields.get(field, ()))
    return next((number for number in summary_values if number is not None), None)


def _number(value: bytes, form: str) -> float | None:
    return float(struct.unpack(form, value)[0]) if len(value) == struct.calcsize(form) else None
