"""`nvidia-smi topo -m`: which kind of path joins each pair of GPUs and NICs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Source, Table
from stallwise.readers._patterns import patterns

FORMAT = "nvidia-smi topo -m"
CAPTURE = "nvidia-smi topo -m > topo.txt"
_P = patterns("nvidia_smi")


def recognises(name: str, head: bytes) -> bool:
    """The row of the first GPU, which has no path to itself."""
    return _P["topology"].search(head[:131072].decode("utf-8", errors="replace")) is not None


def read(artifact: Artifact) -> Iterator[Item]:
    """One table of pairs."""
    header: list[str] = []
    pairs: list[tuple[str, str, str]] = []
    for line in artifact.lines():
        cells = [c for c in map(str.strip, line.split("\t") if "\t" in line else line.split()) if c]
        devices = [c for c in cells if _P["device"].match(c)]
        if devices and not any(map(_P["link"].match, cells[1:])):
            header = devices
        elif header and cells and _P["device"].match(cells[0]):
            links = [c for c in cells[1:] if _P["link"].match(c)]
            pairs += [
                (cells[0], peer, kind)
                for peer, kind in zip(header, links, strict=False)
                if kind != "X" and cells[0] != peer
            ]
    if header:
        columns = {name: np.array([pair[at] for pair in pairs]) for at, name in enumerate(("first", "second", "kind"))}
        yield Table("gpu.paths", columns, Source(artifact.name), meta={"devices": header})
