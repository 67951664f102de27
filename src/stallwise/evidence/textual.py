"""Whether bytes are text that somebody can read, in any script, or a binary format."""

from __future__ import annotations

import re

from stallwise.evidence.artifact import stored_as

SAMPLE_BYTES = 1 << 16
FEW_BYTES = 64  # below: too few to tell an older encoding from a binary header, so it must be UTF-8
# A terminal's colours and pages are text; other control characters hardly occur in it, and in packed or compiled data they are
# one byte in nine.
_READABLE = frozenset({0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x1B})
MOST_CONTROL = 0.01
_CONTROL = bytes(b for b in range(32) if b not in _READABLE) + b"\x7f"
_HOLE = re.compile(rb"\x00+")  # where a disk was full, a machine went down, or a log was cut while its program wrote on


def is_textual(head: bytes) -> bool:
    """By its beginning: UTF-8 of any script, UTF-16 and UTF-32, or an older encoding without control characters; it may have holes."""
    sample = head[:SAMPLE_BYTES]
    encoding = stored_as(sample)
    if encoding != "utf-8":
        text = sample.decode(encoding, "replace")
        return bool(text) and text.count("\x00") + text.count("\ufffd") <= 1 + MOST_CONTROL * len(text)
    sample = _HOLE.sub(b"\x00", sample)
    if not sample.strip() or len(sample) - len(sample.translate(None, _CONTROL)) > MOST_CONTROL * len(sample):
        return False
    return len(sample) >= FEW_BYTES or _is_utf8(sample)


def _is_utf8(sample: bytes) -> bool:
    try:
        sample.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.end == len(sample) and error.reason == "unexpected end of data"  # cut inside a letter
    return True
