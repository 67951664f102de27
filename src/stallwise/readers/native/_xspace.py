"""The message types of an XLA profile (XSpace: planes of lines of events), built for the protobuf package at run time.

Only the fields that are used are declared (xspace.toml).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from stallwise.errors import MissingExtra
from stallwise.readers._patterns import document


@cache
def _space_type() -> Any:
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        raise MissingExtra("protobuf", "jax") from None
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="stallwise_xspace.proto", package="stallwise", syntax="proto3")
    messages = document("native/xspace")
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for field, (number, kind, *repeated) in fields.items():
            made = message.field.add(name=field, number=number, label=3 if repeated else 1)
            if kind in messages:
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
