"""The message types of an XLA profile (XSpace: planes of lines of events), built for the protobuf package at run time.

Only the fields that are used are declared; field numbers are those of `xplane.proto` in openxla/xla. Maps are written on the
wire as lists of key and value, and are declared so.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from stallwise.errors import MissingExtra

_NUMBER, _TEXT = "int64", "string"
# message: (field, number, type, repeated)
_MESSAGES: dict[str, tuple[tuple[str, int, str, bool], ...]] = {
    "Stat": (("metadata_id", 1, _NUMBER, False), ("uint64_value", 3, "uint64", False), ("int64_value", 4, _NUMBER, False)),
    "Event": (
        ("metadata_id", 1, _NUMBER, False),
        ("offset_ps", 2, _NUMBER, False),
        ("duration_ps", 3, _NUMBER, False),
        ("stats", 4, "Stat", True),
    ),
    "Line": (
        ("id", 1, _NUMBER, False),
        ("name", 2, _TEXT, False),
        ("timestamp_ns", 3, _NUMBER, False),
        ("events", 4, "Event", True),
    ),
    "Named": (("id", 1, _NUMBER, False), ("name", 2, _TEXT, False), ("display_name", 4, _TEXT, False)),
    "Entry": (("key", 1, _NUMBER, False), ("value", 2, "Named", False)),
    "Plane": (
        ("id", 1, _NUMBER, False),
        ("name", 2, _TEXT, False),
        ("lines", 3, "Line", True),
        ("event_metadata", 4, "Entry", True),
        ("stat_metadata", 5, "Entry", True),
    ),
    "Space": (("planes", 1, "Plane", True),),
}  # fmt: skip


@cache
def _space_type() -> Any:
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        raise MissingExtra("protobuf", "jax") from None
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="stallwise_xspace.proto", package="stallwise", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, repeated in fields:
            made = message.field.add(name=field, number=number, label=3 if repeated else 1)
            if kind in _MESSAGES:
                made.type, made.type_name = kinds.TYPE_MESSAGE, f".stallwise.{kind}"
            else:
                made.type = getattr(kinds, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("stallwise.Space"))


def space_of(data: bytes) -> Any:
    """The decoded profile. Raises ValueError on bytes that are none."""
    kind = _space_type()
    from google.protobuf.message import DecodeError

    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise ValueError(str(error)) from error
