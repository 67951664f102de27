"""Autotuning as text: TRITON_PRINT_AUTOTUNING, Inductor's list of benchmarked configurations, or triton.Config(...) lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import autotune as a
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Note, Source
from stallwise.readers._cells import NUMBER
from stallwise.readers._configs import items_of

FORMAT = "autotune log"
CAPTURE = "TRITON_PRINT_AUTOTUNING=1 python script.py 2> autotune.log"
_BEST = re.compile(rf"(?:Triton autotuning|Autotuner) for function (\S+?),?\s.*?finished after ({NUMBER})s.*?"
                   r"best config selected: (.+?);", re.S)  # fmt: skip
_BENCHMARK = re.compile(r"Benchmark all input configs for (\S+?),? get")
_PAIR = re.compile(r"\b([A-Za-z]\w*)\s*[:=]\s*(\d+)\b")
_TIMED = re.compile(rf"((?:\b[A-Za-z]\w*: \d+,? ?)+?)\s*:\s*({NUMBER})(?=,|\s|$)(.*)")
_SOURCE = re.compile(r"(?:triton\.)?Config\(\s*\{([^}]*)\}\s*(?:,\s*([^)]*))?\)")
_EXTRA = re.compile(r"nreg (\d+)|nspill (\d+)|#shared-mem (\d+)")
_PER_CONFIG = re.compile(rf"config=(.+?);\s*(?:p50|mean)=({NUMBER}) ms")
_HINT = re.compile(
    rb"autotuning (?:benchmark results )?for function|Autotuner for function|Benchmark all input configs|triton\.Config\(|Config\(\{"
)
MAX_BYTES = 64 << 20


def recognises(name: str, head: bytes) -> bool:
    """One of the three wordings."""
    return b"\x00" not in head[:1024] and b"traceEvents" not in head[:8192] and bool(_HINT.search(head))


def read(artifact: Artifact) -> Iterator[Item]:
    """A table of configurations for each tuned kernel."""
    text = artifact.text(MAX_BYTES)
    source = Source(artifact.name)
    groups: dict[str, list[dict[str, Any]]] = {}
    kernel = ""
    for line in text.splitlines():
        if match := _BENCHMARK.search(line):
            kernel = match[1]
        elif match := _PER_CONFIG.search(line):
            groups.setdefault(kernel, []).append({**_pairs(match[1]), "ms": float(match[2])})
        elif "Skip config" not in line and "best config selected" not in line and (row := _timed(line)):
            groups.setdefault(kernel, []).append(row)
    listed = [{**_pairs(m[1].replace("'", "").replace('"', "")), **_pairs(m[2] or "")} for m in _SOURCE.finditer(text)]
    if listed:
        groups.setdefault("", []).extend(listed)
    for match in _BEST.finditer(text):
        if not any(groups.values()):
            yield Fact(a.BEST_CONFIG, match[3].strip(), source)
            yield Note("the log names the best configuration, not the ones that were tried", source)
    for name, rows in groups.items():
        if rows:
            yield from items_of(rows, source, kernel=name)


def _timed(line: str) -> dict[str, Any] | None:
    match = _TIMED.search(line)
    if match is None or not re.search(r"BLOCK|num_warps|num_stages", match[1], re.I):
        return None
    row: dict[str, Any] = {**_pairs(match[1]), "ms": float(match[2])}
    for registers, spills, shared in _EXTRA.findall(match[3]):
        for key, value in (("nreg", registers), ("nspill", spills), ("shared", shared)):
            if value:
                row[key] = float(value)
    return row


def _pairs(text: str) -> dict[str, Any]:
    return {key: float(value) for key, value in _PAIR.findall(text)}
