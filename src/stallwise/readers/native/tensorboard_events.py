"""TensorBoard event files: scalars by step, read without TensorFlow.

A file is a chain of records (length, checksum, protobuf, checksum). Of the protobuf only four fields matter: the step,
and of each summary value its tag and number.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Note, Source
from stallwise.evidence.reading import Course, Printed, points_of
from stallwise.readers.native._wire import FIXED32, fields_of

FORMAT = "TensorBoard events"
CAPTURE = "SummaryWriter(log_dir)"
EXCLUSIVE = True
MAX_RECORD_BYTES = 256 << 20
EVENT_STEP, EVENT_SUMMARY = 2, 5
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
    cut = False
    for number, record in enumerate(_records(data), 1):
        if record is None:
            cut = True
            break
        try:
            for step, tag, value in _scalars(record):
                found.setdefault(tag, []).append((float(step), value, number))
        except (struct.error, IndexError, ValueError, UnicodeDecodeError):
            cut = True
            break
    if cut:
        yield Note("the event file is cut or damaged; what could be read is used", Source(artifact.name))
    if not found and cut:
        raise UnreadableInput(f"{artifact.name} holds no readable event", hint="copy the file again")
    yield Printed(
        artifact.name, lambda wanted: [Course(tag, points=points_of(rows)) for tag, rows in found.items()], table=True
    )


def _records(data: bytes) -> Iterator[bytes | None]:
    place = 0
    while place + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, place)
        if length > MAX_RECORD_BYTES or place + 16 + length > len(data):
            yield None
            return
        yield data[place + 12 : place + 12 + length]
        place += 16 + length


def _scalars(event: bytes) -> Iterator[tuple[int, str, float]]:
    step, summaries = 0, []
    for field, _, value in fields_of(event):
        if field == EVENT_STEP and isinstance(value, int):
            step = value if value < 1 << 63 else value - (1 << 64)
        elif field == EVENT_SUMMARY and isinstance(value, bytes):
            summaries.append(value)
    for summary in summaries:
        for field, _, value in fields_of(summary):
            if field == SUMMARY_VALUE and isinstance(value, bytes):
                found = _value(value)
                if found is not None:
                    yield step, *found


def _value(message: bytes) -> tuple[str, float] | None:
    tag, number = "", None
    for field, kind, value in fields_of(message):
        if field == VALUE_TAG and isinstance(value, bytes):
            tag = value.decode("utf-8", "replace")
        elif field == VALUE_SIMPLE and kind == FIXED32 and isinstance(value, bytes):
            (number,) = struct.unpack("<f", value)
        elif field == VALUE_TENSOR and isinstance(value, bytes):
            number = _tensor(value)
    return (tag, float(number)) if tag and number is not None else None


def _tensor(message: bytes) -> float | None:
    dtype = 1
    for field, _, value in fields_of(message):
        if field == TENSOR_DTYPE and isinstance(value, int):
            dtype = value
        elif isinstance(value, bytes) and len(value) in (4, 8):
            if field == TENSOR_FLOATS or (field == TENSOR_CONTENT and dtype != DOUBLE_TYPE and len(value) == 4):
                return float(struct.unpack("<f", value[:4])[0])
            if (field == TENSOR_DOUBLES or (field == TENSOR_CONTENT and dtype == DOUBLE_TYPE)) and len(value) == 8:
                return float(struct.unpack("<d", value)[0])
    return None
