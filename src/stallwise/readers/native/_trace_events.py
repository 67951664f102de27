"""One event of a Chrome trace, typed: only the keys a timeline needs; the decoder skips the rest unbuilt."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

ABSENT = Raw()
NO_ID = -1
NAN = float("nan")


def _raw(key: str) -> Any:
    return field(default=ABSENT, name=key)


class Shapes(Struct, gc=False):
    """The args of an operator that matter. Raw ones stay bytes until somebody asks."""

    external: int | None = field(default=NO_ID, name="External id")
    dims: Raw = _raw("Input Dims")
    dims_old: Raw = _raw("Input dims")
    types: Raw = _raw("Input type")
    strides: Raw = _raw("Input Strides")
    concrete: Raw = _raw("Concrete Inputs")
    collective: Raw = _raw("Collective name")
    in_elements: Raw = _raw("In msg nelems")
    out_elements: Raw = _raw("Out msg nelems")
    in_split: Raw = _raw("In split size")
    out_split: Raw = _raw("Out split size")
    dtype: Raw = _raw("dtype")
    group_size: Raw = _raw("Group size")
    group_name: Raw = _raw("Process Group Name")
    group_description: Raw = _raw("Process Group Description")
    group_ranks: Raw = _raw("Process Group Ranks")
    rank_start: Raw = _raw("Global rank start")
    rank_stride: Raw = _raw("Global rank stride")
    source_rank: Raw = _raw("Src Rank")
    target_rank: Raw = _raw("Dst Rank")
    sequence: Raw = _raw("Seq")


class Ids(Struct, gc=False):
    """The args of a call into the runtime that matter."""

    correlation: int | None = NO_ID
    external: int | None = field(default=NO_ID, name="External id")


class Args(Shapes, gc=False):
    """All args that matter of any kind of event. A table of names, as `Shapes` is: one declaration an arg."""

    correlation: int | None = NO_ID
    external_old: int | None = field(default=NO_ID, name="external id")
    size: float | None = field(default=NAN, name="bytes")
    grid: Raw = _raw("grid")
    block: Raw = _raw("block")
    registers: Raw = _raw("registers per thread")
    shared: Raw = _raw("shared memory")
    occupancy: Raw = _raw("est. achieved occupancy %")
    graph: Raw = _raw("graph id")
    graph_node: Raw = _raw("graph node id")
    copy_kind: Raw = _raw("kind")
    sync_kind: Raw = _raw("cuda_sync_kind")
    wait_stream: Raw = _raw("wait_on_stream")
    wait_record: Raw = _raw("wait_on_cuda_event_record_corr_id")
    name: Raw = _raw("name")
    device_type: int | None = field(default=NO_ID, name="Device Type")
    device_id: int | None = field(default=NO_ID, name="Device Id")
    memory_size: float | None = field(default=NAN, name="Bytes")
    address: int | None = field(default=0, name="Addr")
    allocated: float | None = field(default=NAN, name="Total Allocated")
    reserved: float | None = field(default=NAN, name="Total Reserved")


class Event(Struct, gc=False):
    """One entry of traceEvents."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | float | str | None = 0
    tid: int | float | str | None = 0
    ts: float | None = None
    dur: float | None = 0.0
    args: Args | None = None


NO_ARGS = Args()
JSON_KEYS = {f.name: f.encode_name for f in msgspec.structs.fields(Args)} | {"dims_old": "Input Dims"}

_COLLECTIVE = Shapes.__struct_fields__[Shapes.__struct_fields__.index("collective") :]
OP_DETAIL = ("dims", "types", "strides", "concrete", "dims_old", *_COLLECTIVE)
LAUNCH_DETAIL = ("grid", "block", "registers", "shared", "occupancy", "graph", "graph_node", "copy_kind", *_COLLECTIVE)
SYNC_DETAIL = ("sync_kind", "wait_stream", "wait_record")

# Lax: numbers written as strings are numbers (old traces quote their ids).
_list_decoder = msgspec.json.Decoder(list[Event], strict=False)
_event_decoder = msgspec.json.Decoder(Event, strict=False)


def decode_events(first: bytes, more: memoryview) -> list[Event]:
    """Whole events joined by commas, without the brackets. Raises msgspec.DecodeError on anything unexpected."""
    return _list_decoder.decode(b"".join((b"[", first, more, b"]")))


def from_text(text: str, item: Any) -> Event | None:
    """An event from a leniently parsed object and its text; args that do not decode are given up before the event is."""
    if not isinstance(item, dict):
        return None
    try:
        return _event_decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeError):
        pass
    plain = {k: item[k] for k in ("ph", "cat", "name", "pid", "tid", "ts", "dur") if k in item}
    try:
        return _event_decoder.decode(msgspec.json.encode({**plain, "args": _scalars(item.get("args"))}))
    except (msgspec.MsgspecError, UnicodeError, TypeError, ValueError, RecursionError):
        return None


def _scalars(args: Any) -> dict[str, Any]:
    """The args that decode by themselves; one odd value must not cost the others."""
    if not isinstance(args, dict):
        return {}
    kept: dict[str, Any] = {}
    decoder = msgspec.json.Decoder(Args, strict=False)
    for key, value in args.items():
        try:
            decoder.decode(msgspec.json.encode({key: value}))
        except (msgspec.MsgspecError, UnicodeError, TypeError, ValueError, RecursionError):
            continue
        kept[key] = value
    return kept


lenient = json.JSONDecoder(strict=False)  # accepts control characters inside strings, NaN and Infinity
