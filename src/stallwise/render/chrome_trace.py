"""A trace with our findings as tracks, in the JSON that ui.perfetto.dev and chrome://tracing open.

The user's own trace is copied byte for byte; our events are set in at the start of its list. Nothing is parsed, so a
trace of any size costs no more than copying it.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from stallwise.doctor.findings.annotation import Slice
from stallwise.errors import UnreadableInput

PROCESS = 2_000_000_077  # no real process id on Linux, macOS or Windows comes near it
_LIST = re.compile(rb'"traceEvents"\s*:\s*\[')
LOOKED_AT_BYTES = 64 << 20  # properties before the list are short; more than this is no trace
BLOCK_BYTES = 1 << 20


def events(slices: Sequence[Slice]) -> list[dict[str, Any]]:
    """Our tracks as complete events, with names for them."""
    tracks = list(dict.fromkeys(s.track for s in slices))
    found: list[dict[str, Any]] = [
        _named("process_name", 0, {"name": "stallwise"}),
        _named("process_sort_index", 0, {"sort_index": -1}),
    ]
    for number, track in enumerate(tracks, 1):
        found += [
            _named("thread_name", number, {"name": track}), _named("thread_sort_index", number, {"sort_index": number}),
        ]  # fmt: skip
    for s in slices:
        found.append(
            {
                "ph": "X", "cat": "stallwise", "name": s.name, "pid": PROCESS, "tid": tracks.index(s.track) + 1,
                "ts": round(s.start_s * 1e6, 3), "dur": round(s.length_s * 1e6, 3), "args": s.says,
            }
        )  # fmt: skip
    return found


def _named(what: str, track: int, args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": PROCESS, "tid": track, "ts": 0, "args": args}


def write_merged(path: Path, every: Iterable[dict[str, Any]]) -> None:
    """Writes events as they come, packed when the name ends in .gz."""
    packed = path.name.endswith(".gz")
    with gzip.open(path, "wb", compresslevel=3) if packed else path.open("wb") as stream:
        stream.write(b'{"traceEvents": [\n')
        for at, event in enumerate(every):
            stream.write((b",\n" if at else b"") + json.dumps(event, ensure_ascii=False).encode())
        stream.write(b"\n]}")


def write_annotated(path: Path, slices: Sequence[Slice], original: IO[bytes] | None) -> None:
    """Writes the annotated trace, packed when the name ends in .gz; without an original only our tracks."""
    packed = path.name.endswith(".gz")
    with gzip.open(path, "wb", compresslevel=3) if packed else path.open("wb") as stream:
        for block in blocks(slices, original):
            stream.write(block)


def blocks(slices: Sequence[Slice], original: IO[bytes] | None) -> Iterator[bytes]:
    """The bytes of the annotated trace."""
    ours = b",\n".join(json.dumps(e, ensure_ascii=False).encode() for e in events(slices))
    if original is None:
        yield b'{"traceEvents": [\n' + ours + b"\n]}"
        return
    head = original.read(BLOCK_BYTES)
    match = _start_of_list(head)
    while match is None and len(head) < LOOKED_AT_BYTES:
        more = original.read(BLOCK_BYTES)
        if not more:
            break
        head += more
        match = _start_of_list(head)
    if match is None:
        raise UnreadableInput("this trace is not a Chrome trace", hint="only JSON traces can be annotated")
    yield head[:match] + b"\n" + ours
    rest = head[match:].lstrip()
    if not rest:
        rest = original.read(BLOCK_BYTES).lstrip()
    yield rest if rest.startswith(b"]") else b",\n" + rest
    while block := original.read(BLOCK_BYTES):
        yield block


def _start_of_list(head: bytes) -> int | None:
    if (bare := head.lstrip(b"\xef\xbb\xbf \t\r\n")).startswith(b"["):  # the bare list form
        return len(head) - len(bare) + 1
    found = _LIST.search(head)
    return found.end() if found else None
