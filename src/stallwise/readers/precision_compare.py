"""Comparisons of two ways to compute the same: lines that state a relative difference."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import numerics
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Note, Source

FORMAT = "precision comparison"
_LINE = re.compile(
    r"(?:max(?:imum)?\s+)?rel(?:ative|\.)?[ _](?:difference|diff|error|err)\b(.*?)[:=]\s*([\d.]+e[+-]?\d+|\d*\.\d+)",
    re.I,
)
TF32_ROUNDING = 2.0**-11  # half a unit of a 10-bit mantissa
MAX_BYTES = 4 << 20


def recognises(name: str, head: bytes) -> bool:
    """Short text with such a line."""
    return (
        b"\x00" not in head[:1024]
        and head[:1] not in (b"{", b"[")
        and bool(_LINE.search(head[:65536].decode("utf-8", "replace")))
    )


def read(artifact: Artifact) -> Iterator[Item]:
    """Each difference, and what size rounding alone would give."""
    for at, line in enumerate(artifact.text(MAX_BYTES).splitlines(), 1):
        match = _LINE.search(line)
        if not match:
            continue
        source = Source(artifact.name, f"line {at}")
        value = float(match[2])
        yield Fact(numerics.DIFFERENCE, value, source, note=match[1].strip())
        if re.search(r"tf32|tensor_float_32\w*=True", line, re.I) and value <= 4 * TF32_ROUNDING:
            yield Note(f"a relative difference of {value:.1e} is what TF32's 10-bit mantissa rounds to", source)
