"""`nvidia-smi topo -m`: which kind of path joins each pair of GPUs and NICs."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Source, Table

FORMAT = "nvidia-smi topo -m"
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
    first: list[str] = []
    second: list[str] = []
    kinds: list[str] = []
    for line in artifact.lines():
        cells = [cell.strip() for cell in ANSI.sub("", line).split("\t")]
        if len(cells) == 1:
            cells = line.split()
        cells = [c for c in cells if c]
        if not cells:
            continue
        devices = [c for c in cells if DEVICE.match(c)]
        if len(devices) >= 1 and not any(LINK.match(c) for c in cells[1:]):
            header = devices
        elif header and DEVICE.match(cells[0]):
            links = [c for c in cells[1:] if LINK.match(c)][: len(header)]
            for peer, kind in zip(header, links, strict=False):
                if kind != "X" and cells[0] != peer:
                    first.append(cells[0])
                    second.append(peer)
                    kinds.append(kind)
    if header:
        columns = {"first": np.array(first), "second": np.array(second), "kind": np.array(kinds)}
        yield Table("gpu.paths", columns, Source(artifact.name), meta={"devices": header})
