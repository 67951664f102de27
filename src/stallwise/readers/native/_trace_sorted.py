"""The quick way through a trace: each category decoded into the few fields it needs.

Nearly all events of a trace are of a dozen categories. Told apart by the decoder, flow arrows cost next to nothing and
calls into the runtime bring two ids instead of forty fields. A block with any other category goes the general way.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Literal, Union

import msgspec
from msgspec import Struct

from stallwise.readers.native._trace_events import Args, Event, Ids, Shapes


class Has(Enum):
    """Which columns a category brings."""

    NOTHING = 0
    IDS = 1
    SHAPES = 2
    LAUNCH = 3
    ANYTHING = 4  # events of other categories


class _Timed(Struct, gc=False):
    name: str = ""
    pid: int | float | str | None = 0
    tid: int | float | str | None = 0
    ts: float | None = None
    dur: float | None = 0.0


class _Whole(_Timed, gc=False, kw_only=True):
    """Written with its duration; an event in two halves sends its block the general way."""

    ph: Literal["X"]


class _Odd(_Timed, gc=False):
    ph: str = ""


def _of(category: str, args: Any, base: type[Struct] = _Whole) -> type[Struct]:
    fields = [("args", args | None, None)] if args is not None else []
    return msgspec.defstruct(f"Of_{category}", fields, bases=(base,), gc=False, tag_field="cat", tag=category)


def _arrow(category: str) -> type[Struct]:
    return msgspec.defstruct(f"Of_{category}", [], gc=False, tag_field="cat", tag=category)


WITHOUT_TIME = frozenset(_arrow(c) for c in ("ac2g", "fwdbwd", "async_cpu_to_gpu", "async_gpu", "forward_backward"))
QUICK: dict[type, Has] = {
    _of("cpu_op", Shapes): Has.SHAPES,
    _of("cuda_runtime", Ids): Has.IDS,
    _of("cuda_driver", Ids): Has.IDS,
    _of("kernel", Args): Has.LAUNCH,
    _of("gpu_memcpy", Args): Has.LAUNCH,
    _of("gpu_memset", Args): Has.LAUNCH,
    _of("python_function", None): Has.NOTHING,
}
_OTHERS = tuple(
    _of(c, Args, _Odd)
    for c in ("user_annotation", "gpu_user_annotation", "cuda_sync", "overhead", "Trace", "cpu_instant_event")
)
_decoder = msgspec.json.Decoder(list[Union[(*QUICK, *WITHOUT_TIME, *_OTHERS)]], strict=False)  # type: ignore[valid-type]


def decode_sorted(first: bytes, more: memoryview) -> list[Any]:
    """Like decode_events, for blocks of well-known categories; raises msgspec.ValidationError on any other."""
    return _decoder.decode(b"".join((b"[", first, more, b"]")))


def as_event(event: Any, category: str) -> Event:
    """The general form."""
    args = event.args if hasattr(event, "args") else None
    if args is not None and not isinstance(args, Args):
        known = {name: getattr(args, name) for name in args.__struct_fields__}
        args = Args(**known)
    return Event(event.ph, category, event.name, event.pid, event.tid, event.ts, event.dur, args)
