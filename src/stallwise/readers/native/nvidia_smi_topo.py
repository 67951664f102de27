"""`nvidia-smi topo -m`: which kind of path joins each pair of GPUs and NICs."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Source, Table

FORMAT = "nvidia-smi topo -m"
CAPTURE = "nvidia-smi topo -m > topo.txt"
ANSI = re.compile(r"\x1b\[[0-9;]*m")
DEVICE = re.compile(r"^(GPU\d+|NIC\d+|mlx\d+_\d+|hfi\d+_\d+|rocep\w+|bnxt_re\d+)$")
LINK = re.compile(r"^(X|SYS|NODE|PHB|PXB|PIX|NV\d+|SOC|PSB|C2C)$")


def recognises(name: str, head: bytes) -> bool:
    """A heading of devices and a row that starts with one."""
    text = ANSI.sub("", head[:131072].decode("utf-8", errors="replace"))
    return re.search(r"^\s*GPU0\b", text, re.MULTILINE) is not None and (
        re.search(r"^GPU0\s+X\b", text, re.MULTILINE) is not None
    )


def read(artifact: Artifact) -> Iterator[Item]:
    """One table of pairs."""
    header: list[str] = []
    pairs: list[tuple[str, str, str]] = []
    for line in artifact.lines():
        plain = ANSI.sub("", line)
        cells = [c for c in map(str.strip, plain.split("\t") if "\t" in plain else plain.split()) if c]
        devices = [c for c in cells if DEVICE.match(c)]
        if devices and not any(map(LINK.match, cells[1:])):
            header = devices
        elif header and cells and DEVICE.match(cells[0]):
            links = [c for c in cells[1:] if LINK.match(c)]
            pairs += [
                (cells[0], peer, kind)
                for peer, kind in zip(header, links, strict=False)
                if kind != "X" and cells[0] != peer
            ]
    if header:
        columns = {name: np.array([pair[at] for pair in pairs]) for at, name in enumerate(("first", "second", "kind"))}
        yield Table("gpu.paths", columns, Source(artifact.name), meta={"devices": header})
