"""`nsys stats --report cuda_gpu_kern_sum` (also gpukernsum) as CSV: time by kernel."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Note, Scope, Source

FORMAT = "nsys kernel summary"
CAPTURE = "nsys stats --report cuda_gpu_kern_sum --format csv run.nsys-rep > kernels.csv"
NANOSECOND = 1e-9
_HEADER = re.compile(
    r'^"?Time ?\(%\)"?,"?Total Time(?: \((\w+)\))?"?,"?(?:Instances|Count)"?,.*"?(?:Name|GridXYZ.*)"?', re.I
)
_SCALE = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def recognises(name: str, head: bytes) -> bool:
    """Its header line: a share, a total, instances and a name."""
    text = head[:65536].decode("utf-8", "replace")
    return any(_HEADER.match(line) for line in text.splitlines())


def read(artifact: Artifact) -> Iterator[Item]:
    """Total and mean time of every kernel, and its share."""
    lines = artifact.lines()
    begin = next(i for i, line in enumerate(lines) if _HEADER.match(line))
    match = _HEADER.match(lines[begin])
    unit = _SCALE.get((match[1] or "ns") if match else "ns", NANOSECOND)
    rows = []
    for number, row in enumerate(csv.reader(lines[begin + 1 :]), begin + 2):
        if len(row) < 4:
            break
        try:
            rows.append(
                (float(row[1].replace(",", "")) * unit, float(row[2].replace(",", "")), row[-1].strip(), number)
            )
        except ValueError:
            continue
    whole = sum(total for total, *_ in rows)
    if not rows:
        yield Note("the kernel summary is empty", Source(artifact.name))
    for total, count, name, number in rows:
        scope, source = Scope(kernel=name), Source(artifact.name, f"line {number}")
        yield Fact(k.TOTAL_TIME, total, source, scope, samples=int(count))
        yield Fact(k.TIME, total / max(count, 1.0), source, scope, samples=int(count))
        if whole:
            yield Fact(k.TIME_SHARE, total / whole, source, scope)
