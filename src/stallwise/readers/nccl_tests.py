"""nccl-tests output (all_reduce_perf and its kin): the table by message size, and the JSON that -J writes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog.fabric import NCCL_TIME, NCCL_WRONG
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source, Table

FORMAT = "nccl-tests"
CAPTURE = "all_reduce_perf -b 8 -e 4G -f 2 -g 8 -J out.json"
LONGEST = 2000  # characters of a line that are looked at: what it reads is shorter

_NUMBER = r"(\d{1,30}(?:\.\d{0,30})?)"
_TIMES = rf"{_NUMBER}\s+{_NUMBER}\s+{_NUMBER}\s+(\S+)(?:\s+{_NUMBER}\s+{_NUMBER}\s+{_NUMBER}\s+(\S+))?"
ROW = re.compile(rf"^\s*(\d+)\s+(\d+)\s+(\w+)\s+(\w+)\s+(-?\d+)\s+{_TIMES}")
ROW_SHORT = re.compile(rf"^\s*(\d+)\s+(\d+)\s+(\w+)\s+{_TIMES}")
DEVICE = re.compile(r"#\s+Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\s+\d+ on\s+(\S+) device\s+(\d+) \[[^\]]*\] (.+?)\s*$")
TEST = re.compile(
    r"\b((?:all_reduce|all_gather|reduce_scatter|alltoall|broadcast|reduce|sendrecv|hypercube|gather|scatter)_perf)\b"
)


def recognises(name: str, head: bytes) -> bool:
    """The header comment of the table, or JSON with its keys."""
    return (
        re.search(rb"#\s+size\s+count\s+type|# nThread \d+ nGpus|# Avg bus bandwidth|# nccl-tests version", head)
        is not None
        or (head.lstrip()[:1] == b"{" and b'"nccl_tests' in head)
        or (head.lstrip()[:1] == b"{" and b'"results"' in head and b'"out_of_place"' in head)
    )


def read(artifact: Artifact) -> Iterator[Item]:
    """Table collective.bandwidth: size, time and bus bandwidth; ranks and hosts in its meta."""
    if artifact.head.lstrip()[:1] == b"{":
        yield from _json(artifact)
        return
    rows: list[tuple[float, float, float]] = []
    hosts: set[str] = set()
    ranks, test, device, wrong, first = 0, "", "", 0.0, 0
    text = artifact.skeletons
    telling = text.where(lambda x: any(p.search(x.strip()) for p in (DEVICE, TEST, ROW, ROW_SHORT)))
    for number, line in ((at + 1, text.lines[at].strip()[:LONGEST]) for at in text.lines_of(telling)):
        if found := DEVICE.search(line):
            ranks, device = max(ranks, int(found[1]) + 1), found[4]
            hosts.add(found[2])
        elif found := TEST.search(line):
            test = test or found[1]
        elif found := ROW.match(line):
            rows.append((float(found[1]), float(found[6]) * 1e-6, float(found[8]) * 1e9))
            wrong += _wrong(found[9]) + _wrong(found[13])
            first = first or number
        elif found := ROW_SHORT.match(line):
            rows.append((float(found[1]), float(found[4]) * 1e-6, float(found[6]) * 1e9))
            wrong += _wrong(found[7])
            first = first or number
    meta = {"test": test, "ranks": ranks, "nodes": len(hosts), "device": device}
    yield from _items(artifact.name, rows, meta, wrong, first)


def _wrong(text: str | None) -> float:
    return float(text) if text and text.isdigit() else 0.0


def _json(artifact: Artifact) -> Iterator[Item]:
    try:
        data = msgspec.json.decode(artifact.text().encode())
    except (msgspec.DecodeError, RecursionError) as error:
        raise UnreadableInput(f"{artifact.name} is damaged JSON: {error}", hint="run the test again with -J") from error
    rows: list[tuple[float, float, float]] = []
    wrong = 0.0
    for result in data.get("results", []) if isinstance(data, dict) else []:
        side = result.get("out_of_place") or result.get("in_place") or {} if isinstance(result, dict) else {}
        found: tuple[Any, ...] = (result.get("size"), side.get("time"), side.get("bus_bw", side.get("busbw")))
        if all(isinstance(x, (int, float)) for x in found):
            rows.append((float(found[0]), float(found[1]) * 1e-6, float(found[2]) * 1e9))
            errors = side.get("nwrong", side.get("errors", 0))
            wrong += float(errors) if isinstance(errors, (int, float)) else 0.0
    yield from _items(artifact.name, rows, _meta(data), wrong, 1)


def _meta(data: Any) -> dict[str, Any]:
    config = data.get("config", {}) if isinstance(data, dict) else {}
    devices = data.get("devices", []) if isinstance(data, dict) else []
    hosts = {d.get("hostname", d.get("host")) for d in devices if isinstance(d, dict)}
    size = data.get("nranks") or (config.get("nranks") if isinstance(config, dict) else 0) or len(devices)
    name = devices[0].get("device_name", "") if devices and isinstance(devices[0], dict) else ""
    return {"test": str(data.get("test", "")), "ranks": int(size or 0), "nodes": len(hosts), "device": name}


def _items(
    file: str, rows: list[tuple[float, float, float]], meta: dict[str, Any], wrong: float, line: int
) -> Iterator[Item]:
    if not rows:
        return
    size, time, bandwidth = (np.array(v) for v in zip(*rows, strict=True))
    source = Source(file, f"line {line}")
    yield Table(
        "collective.bandwidth", {"size_bytes": size, "time_s": time, "bus_bytes_per_s": bandwidth}, source, meta=meta
    )
    yield Fact(NCCL_TIME, float(bandwidth.max()), source, samples=len(rows))
    if wrong:
        yield Fact(NCCL_WRONG, wrong, source)
