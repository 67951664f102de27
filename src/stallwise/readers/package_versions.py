"""Lists of installed NCCL packages, per host where the listing names hosts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog.fabric import NCCL_VERSION
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Source
from stallwise.readers.shapes.lines import node_of_file

FORMAT = "package list"
CAPTURE = "pip list > packages.txt"
HOST = re.compile(r"^(?:=+|#+|---+)\s*([\w.-]+)\s*(?:=*|#*|-*)$|^([\w.-]+):\s*$")
PACKAGE = re.compile(
    r"^(?:([\w.-]+):\s+)?(?:ii\s+)?(nvidia-nccl-cu\d+|libnccl2|nccl|rccl)\s*(?:==|\s|@)\s*(\d+\.\d+[\w.+-]*)"
)


def recognises(name: str, head: bytes) -> bool:
    """A package name with a version."""
    return any(PACKAGE.match(line) for line in head[:262144].decode("utf-8", errors="replace").splitlines())


def read(artifact: Artifact) -> Iterator[Item]:
    """The newest NCCL package of each host: the one a current build of PyTorch loads."""
    node = node_of_file(artifact.name)
    newest: dict[str | None, tuple[tuple[int, ...], str, int]] = {}
    for number, line in enumerate(artifact.lines(), 1):
        if heading := HOST.match(line.strip()):
            node = heading[1] or heading[2]
        elif package := PACKAGE.match(line.strip()):
            where = package[1] or node
            order = tuple(int(n) for n in re.findall(r"\d+", package[3])[:4])
            if where not in newest or order > newest[where][0]:
                newest[where] = order, package[3], number
    for where, (_, version, number) in newest.items():
        yield Fact(NCCL_VERSION, version, Source(artifact.name, f"line {number}"), Scope(node=where), note="package")
