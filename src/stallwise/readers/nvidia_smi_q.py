"""`nvidia-smi -q`: everything about each GPU as indented text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog.hardware import GPU_LOST
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source
from stallwise.readers._cells import whole_of
from stallwise.readers._gpu_samples import LOST, GpuSamples, seconds
from stallwise.readers._gpu_state import take, word

FORMAT = "nvidia-smi -q"
CAPTURE = "nvidia-smi -q > q.txt"
GPU_LINE = re.compile(r"^GPU (?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]")
NAME = re.compile(r"product_name$")


def recognises(name: str, head: bytes) -> bool:
    """The banner, or a GPU heading followed by what -q prints under it."""
    text = head[:262144].decode("utf-8", errors="replace")
    return "NVSMI LOG" in text or (
        re.search(r"^GPU [0-9A-Fa-f:.]{10,}\s*$", text, re.MULTILINE) is not None
        and re.search(r"^ {4,}\S.* {2,}: ", text, re.MULTILINE) is not None
    )


def read(artifact: Artifact) -> Iterator[Item]:
    """One sample per GPU and report."""
    samples = GpuSamples(artifact.name)
    time_s = float("nan")
    gpu: _Gpu | None = None
    index = -1
    for number, line in enumerate(artifact.lines(), 1):
        if "NVSMI LOG" in line:
            _flush(gpu, samples)
            gpu, index = None, -1
        elif GPU_LINE.match(line):
            _flush(gpu, samples)
            index += 1
            gpu = _Gpu(index, line.split()[1], number, time_s)
        elif line.startswith("Timestamp"):
            time_s = seconds(line.partition(":")[2])
        elif LOST.search(line):
            yield Fact(GPU_LOST, line.strip()[:200], Source(artifact.name, f"line {number}"))
        elif gpu is not None and line.strip():
            gpu.line(line)
    _flush(gpu, samples)
    yield from samples.items()


class _Gpu:
    """The block of one GPU while it is read: sections are told by their indentation."""

    def __init__(self, index: int, bus_id: str, line: int, time_s: float) -> None:
        self.index, self.bus_id, self.first_line, self.name = index, bus_id, line, ""
        self.values: dict[str, float] = {"time_s": time_s}
        self.sections: list[tuple[int, str]] = []

    def line(self, line: str) -> None:
        indent = len(line) - len(line.lstrip())
        key, colon, value = line.strip().partition(" : ")
        if not colon and line.rstrip().endswith(":"):
            key, colon, value = line.strip()[:-1], ":", ""
        while self.sections and self.sections[-1][0] >= indent:
            self.sections.pop()
        path = "/".join([*(s for _, s in self.sections), word(key)])
        if not colon:
            self.sections.append((indent, word(key)))
            return
        # "HW Slowdown : Active" has lines of its own below it, so a value can be a section too.
        self.sections.append((indent, word(key)))
        if path == "product_name":
            self.name = value.strip()
        elif path == "minor_number" and (index := whole_of(value)) is not None:
            self.index = index
        else:
            take(path, value, self.values)


def _flush(gpu: _Gpu | None, samples: GpuSamples) -> None:
    if gpu is not None:
        samples.add(gpu.index, gpu.values, gpu.first_line, name=gpu.name, bus_id=gpu.bus_id)
