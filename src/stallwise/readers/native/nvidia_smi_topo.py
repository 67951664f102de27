"""`nvidia-smi topo -m`: which kind of path joins each pair of GPUs and NICs, and which NUMA node each GPU is near."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Note, Source, Table
from stallwise.readers._patterns import patterns

FORMAT = "nvidia-smi topo -m"
LABELLED = True  # a matrix and its legend: the legend names every kind of path, whatever is there
CAPTURE = "nvidia-smi topo -m > topo.txt"
_P = patterns("nvidia_smi")


def recognises(name: str, head: bytes) -> bool:
    """The row of the first GPU, which has no path to itself."""
    return _P["topology"].search(head[:131072].decode("utf-8", errors="replace")) is not None


def read(artifact: Artifact) -> Iterator[Item]:
    """One table of pairs."""
    header: list[str] = []
    pairs: list[tuple[str, str, str]] = []
    numa: dict[str, str] = {}
    lines: list[int] = []
    for at, line in enumerate(artifact.lines(), 1):
        text = _P["underline"].sub("", line)
        cells = [c for c in map(str.strip, text.split("\t") if "\t" in text else text.split()) if c]
        devices = [c for c in cells if _P["device"].match(c)]
        if any(d.startswith("GPU") for d in devices) and not any(map(_P["link"].match, cells[1:])):
            header = devices
            lines.append(at)
        elif header and cells and _P["device"].match(cells[0]):
            links = [c for c in cells[1:] if _P["link"].match(c)]
            lines.append(at)
            near = cells[1 + len(links) :]
            if len(near) > 1 and near[1].isdigit():
                numa[cells[0]] = near[1]
            pairs += [
                (cells[0], peer, kind)
                for peer, kind in zip(header, links, strict=False)
                if kind != "X" and cells[0] != peer
            ]
    if header:
        columns = {name: np.array([pair[at] for pair in pairs]) for at, name in enumerate(("first", "second", "kind"))}
        source = Source(artifact.name, f"lines {lines[0]}-{lines[-1]}")
        yield Table("gpu.paths", columns, source, meta={"devices": header, "numa": numa})
        if missing := [d for d in header if d not in {pair[0] for pair in pairs} and len(header) > 1]:
            yield Note(f"cut off: no row of {', '.join(missing[:4])}", source, lost=True)
