"""nccl-tests output (all_reduce_perf and its kin): the table by message size, and the JSON that -J writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog.fabric import NCCL_TIME, NCCL_WRONG
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source, Table
from stallwise.readers._cells import columns_of, json_of, number_of, objects_under
from stallwise.readers._patterns import patterns

FORMAT = "nccl-tests"
CAPTURE = "all_reduce_perf -b 8 -e 4G -f 2 -g 8 -J out.json"
LONGEST = 2000  # characters of a line that are looked at: what it reads is shorter
_P = patterns("nccl_tests")
Row = tuple[float, float, float]  # bytes, seconds, bytes a second


def recognises(name: str, head: bytes) -> bool:
    """The header comment of the table, or JSON with its keys."""
    if head.lstrip()[:1] == b"{":
        return b'"nccl_tests' in head or (b'"results"' in head and b'"out_of_place"' in head)
    return _P["heading"].search(head.decode("utf-8", "replace")) is not None


def read(artifact: Artifact) -> Iterator[Item]:
    """Table collective.bandwidth: size, time and bus bandwidth; ranks and hosts in its meta."""
    rows, meta, wrong, line = (_json if artifact.head.lstrip()[:1] == b"{" else _text)(artifact)
    if rows:
        source = Source(artifact.name, f"line {line}")
        columns = columns_of(("size_bytes", "time_s", "bus_bytes_per_s"), rows)
        yield Table("collective.bandwidth", columns, source, meta=meta)
        yield Fact(NCCL_TIME, max(row[2] for row in rows), source, samples=len(rows))
        if wrong:
            yield Fact(NCCL_WRONG, wrong, source)


def _text(artifact: Artifact) -> tuple[list[Row], dict[str, Any], float, int]:
    rows: list[Row] = []
    hosts: set[str] = set()
    ranks, test, device, wrong, first = 0, "", "", 0.0, 0
    text = artifact.skeletons
    telling = text.where(lambda x: any(p.search(x.strip()) for p in _P.values()))
    for number, line in ((at + 1, text.lines[at].strip()[:LONGEST]) for at in text.lines_of(telling)):
        if found := _P["device"].search(line):
            ranks, device = max(ranks, int(found[1]) + 1), found[4]
            hosts.add(found[2])
        elif found := _P["test"].search(line):
            test = test or found[1]
        elif found := _P["row"].match(line):
            rows.append((float(found["size"]), float(found["time"]) * 1e-6, float(found["busbw"]) * 1e9))
            wrong += sum(float(found[g]) for g in ("wrong", "wrong_in_place") if (found[g] or "").isdigit())
            first = first or number
    return rows, {"test": test, "ranks": ranks, "nodes": len(hosts), "device": device}, wrong, first


def _json(artifact: Artifact) -> tuple[list[Row], dict[str, Any], float, int]:
    data = json_of(artifact.text(), artifact.name, "run the test again with -J")
    data = data if isinstance(data, dict) else {}
    rows: list[Row] = []
    wrong = 0.0
    for result in objects_under(data, "results"):
        side = next((s for k in ("out_of_place", "in_place") if isinstance(s := result.get(k), dict)), {})
        told = [number_of(x) for x in (result.get("size"), side.get("time"), side.get("bus_bw", side.get("busbw")))]
        size, time, bandwidth = (x if x is not None else -1.0 for x in told)
        if None not in told:
            rows.append((size, time * 1e-6, bandwidth * 1e9))
            wrong += number_of(side.get("nwrong", side.get("errors", 0))) or 0.0
    devices = objects_under(data, "devices")
    config = data.get("config")
    size_of = data.get("nranks") or (config.get("nranks") if isinstance(config, dict) else 0) or len(devices)
    hosts = {d.get("hostname", d.get("host")) for d in devices}
    device = devices[0].get("device_name", "") if devices else ""
    ranks = int(number_of(size_of) or 0)
    meta = {"test": str(data.get("test", "")), "ranks": ranks, "nodes": len(hosts), "device": device}
    return rows, meta, wrong, 1
