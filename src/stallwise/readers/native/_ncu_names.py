"""Which column, counter or sentence of Nsight Compute is which quantity (ncu.toml)."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.catalog import quantities
from stallwise.evidence.quantity import Quantity
from stallwise.readers._cells import NUMBER
from stallwise.readers._patterns import document, patterns
from stallwise.units import Unit

_P = patterns("ncu_text")


@cache
def displayed() -> dict[tuple[str, str], Quantity]:
    """By title and class of unit: "%" for percentages, "/s" for rates, "" for anything else."""
    known, kinds = quantities(), {Unit.SHARE: "%", Unit.BYTE_PER_S: "/s"}
    return {
        (t, kinds.get(known[q].unit, "")): known[q]
        for q, titles in document("native/ncu")["display"].items()
        for t in titles
    }


@cache
def counters() -> tuple[tuple[Quantity, tuple[str, ...]], ...]:
    """Each quantity with the counters that tell it."""
    return tuple((quantities()[name], tuple(found)) for name, found in document("native/ncu")["counters"].items())


@cache
def derived() -> tuple[dict[str, Any], ...]:
    """Sums and shares of counters, in their order."""
    return tuple(document("native/ncu")["derived"])


@cache
def sentences() -> tuple[tuple[re.Pattern[str], dict[str, Any]], ...]:
    """What the tool's own rules say, with the entry that tells what it is."""
    rows = document("native/ncu")["sentence"]
    return tuple((re.compile(row["match"].replace("NUMBER", NUMBER), re.S | re.I), row) for row in rows)


def facts_in_rule(text: str) -> dict[Quantity, float | str]:
    """What a sentence measures."""
    found: dict[Quantity, float | str] = {}
    for pattern, row in sentences():
        for found_text in pattern.findall(text):
            value = float(found_text) / (100 if row.get("percent") else 1)
            found[quantities()[row["is"]]] = value / (1 + value) if row.get("above") else value
    if match := _P["top_pipe"].match(text):
        inner = _P["sub_pipe"].search(match[3])
        real = inner[1] if inner else match[1]  # "Shared" is only the sum of FP64 and tensor
        found |= {k.TOP_PIPE: real, k.TOP_PIPE_SHARE: float(match[2]) / 100}
        pipe = document("native/ncu")["pipes"].get("".join(re.findall("[a-z0-9]+", real.lower())[:1]))
        found |= {quantities()[pipe]: float(match[2]) / 100} if pipe else {}
    if match := _P["stalled"].search(text):
        word = next((w for phrase, w in document("native/ncu")["stalls"].items() if phrase in match[1].lower()), None)
        found |= {k.STALLS[word]: float(match[2]) / 100} if word else {}
    if (match := _P["fused"].search(text)) and int(match[1]) + int(match[2]):
        found[k.FUSED_SHARE] = int(match[1]) / (int(match[1]) + int(match[2]))
    return found
