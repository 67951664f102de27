"""Cuts a stream of bytes into blocks of whole events, whatever stands before, between and after them.

The cut is a guess (the last place that looks like the start of an event) that the decoder verifies: a block that begins
at an event and decodes as a list is right. A block that does not decode goes through a slow, lenient parser that keeps
every event it can and counts the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from stallwise.evidence.blocks import Blocks
from stallwise.readers.native._trace_events import Event, decode_events, from_text, lenient
from stallwise.readers.native._trace_sorted import decode_sorted

_ARRAY = re.compile(rb'"traceEvents"\s*:\s*\[')
_BOUNDARY = re.compile(r'\{\s*"(?:ph|cat|name|pid|tid|ts|dur|args|bp|tts)"\s*:')
_BEGIN = re.compile(_BOUNDARY.pattern.encode())
_SPACE = b" \t\r\n"
_GAP = re.compile(r"[\s,]*")
_WIDEST_GAP = 64  # bytes of space and comma between two events
_LOOK_BACK = 64  # candidates for a cut; one of the last few objects is a top-level event in every layout seen
MAX_PENDING_BYTES = 64 << 20  # without a cut for so long, the layout is not what we think: parse leniently


PATIENCE = 3  # blocks in a row; a trace of other categories is read the general way from then on


class Sorted(list[Any]):
    """Events that were decoded by category."""


@dataclass(frozen=True)
class Share:
    """Which blocks a process decodes, of several that read the same trace; the first also reads its end."""

    part: int
    of: int


class Unshared(Exception):
    """A block that only one who reads all of them can understand."""


class Split:
    """Iterates over lists of events; afterwards `properties`, `lost` and `cut_off` tell the rest."""

    def __init__(self, blocks: Blocks, share: Share | None = None) -> None:
        self.blocks = blocks
        self.share = share
        self.number = 0  # of the block that the events came from
        self.properties: dict[str, Any] = {}
        self.found = False  # an event array was there
        self.cut_off = False  # it did not end
        self.lost = 0  # events that could not be read, about
        self._closed = False
        self._refused = 0  # blocks in a row that the quick way could not read

    def __iter__(self) -> Iterator[list[Event]]:
        stream = iter(self.blocks)
        rest = self._head(stream)
        if not self.found:
            return
        for block in stream:
            if self._closed:
                rest += block if len(rest) < MAX_PENDING_BYTES else b""
                continue
            stop, start = last_boundary(block)
            if stop < 0 and len(rest) + len(block) < MAX_PENDING_BYTES:
                rest += block
                continue
            self.number += 1
            if self.share is not None and self.number % self.share.of != self.share.part:
                if stop <= 0:
                    raise Unshared
                rest = block[start:]
                continue
            events, rest = self._events(rest, block, stop, start)
            yield events
        if self.share is not None and self.share.part:
            return
        self.number += 1
        if not self._closed:
            events, rest = self._events(b"", rest, *last_boundary(rest))
            yield events
        if not self._closed:
            events, rest = self._leniently(rest)  # the last event, and the end of the array
            yield events
            self.cut_off = not self._closed
        if not self.cut_off:
            self._tail(rest)

    def _head(self, stream: Iterator[bytes]) -> bytes:
        """Reads up to the event array; what stands before it is properties."""
        seen = b""
        for block in stream:
            searched = max(len(seen) - 64, 0)
            if searched > MAX_PENDING_BYTES:
                return b""  # no writer puts so much before its events
            seen += block
            if not searched and seen[:4096].lstrip(b"\xef\xbb\xbf" + _SPACE)[:1] == b"[":
                self.found = True
                return seen[seen.index(b"[") + 1 :]
            match = _ARRAY.search(seen, searched)
            if match:
                self.found = True
                self._take_properties(seen[: match.start()].rstrip(_SPACE + b",") + b"}")
                return seen[match.end() :]
        return b""

    def _events(self, rest: bytes, block: bytes, stop: int, start: int) -> tuple[list[Event], bytes]:
        if stop > 0:
            whole = memoryview(block)[:stop]
            if self._refused < PATIENCE:
                try:
                    events = Sorted(decode_sorted(rest, whole))
                    self._refused = 0
                    return events, block[start:]
                except (msgspec.MsgspecError, UnicodeError, ValueError, RecursionError):
                    self._refused += 1
            try:
                return decode_events(rest, whole), block[start:]
            except (msgspec.MsgspecError, UnicodeError, ValueError, RecursionError):
                if self.share is not None:
                    raise Unshared from None
        return self._leniently(rest + block)

    def _leniently(self, pending: bytes) -> tuple[list[Event], bytes]:
        """Event by event; gives back what was not consumed."""
        text = pending.decode("utf-8", "replace")
        events: list[Event] = []
        at = 0
        while True:
            gap = _GAP.match(text, at)
            at = gap.end() if gap else at
            if at == len(text):
                return events, b""
            if text[at] == "]":
                self._closed = True
                return events, text[at + 1 :].encode("utf-8", "replace")
            try:
                item, end = lenient.raw_decode(text, at)
            except (ValueError, RecursionError) as error:
                again = _BOUNDARY.search(text, at + 1)
                if again is None or (_runs_out(error, text) and len(text) - at < MAX_PENDING_BYTES):
                    return events, text[at:].encode("utf-8", "replace")
                self.lost += 1
                at = again.start()
                continue
            event = self._event(text[at:end], item)
            at = end
            if event is None:
                self.lost += 1
            else:
                events.append(event)

    def _event(self, text: str, item: Any) -> Any:
        """One event that was read leniently, typed."""
        return from_text(text, item)

    def _tail(self, rest: bytes) -> None:
        """Some writers put the properties after the events."""
        text = rest.strip(_SPACE + b",")
        if text and text != b"}":
            self._take_properties(b"{" + text)

    def _take_properties(self, text: bytes) -> None:
        try:
            found, _ = lenient.raw_decode(text.decode("utf-8-sig", "replace").lstrip())
        except (json.JSONDecodeError, ValueError, RecursionError):
            return
        if isinstance(found, dict):
            self.properties.update(found)


def _runs_out(error: Exception, text: str) -> bool:
    """True when the text ended before the value did, which more bytes may mend."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    return error.msg.startswith("Unterminated string") or error.pos >= len(text.rstrip()) - 1


def last_boundary(block: bytes) -> tuple[int, int]:
    """Where the last but one event seems to stop and the last to start; (-1, -1) when no border is seen."""
    end = len(block)
    for _ in range(_LOOK_BACK):
        at = block.rfind(b"{", 0, end)
        if at < 0:
            break
        if _BEGIN.match(block, at):
            window = max(at - _WIDEST_GAP, 0)
            before = block[window:at].rstrip(_SPACE)
            if before.endswith(b","):
                before = before[:-1].rstrip(_SPACE)
                if before.endswith(b"}"):
                    return window + len(before), at
        end = at
    return -1, -1
