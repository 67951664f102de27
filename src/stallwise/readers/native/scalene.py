"""Scalene's JSON: time by line of source, of Python, of native code and of the GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Source
from stallwise.evidence.profile import UNKNOWN, Spent, profile_table
from stallwise.readers._cells import json_of, number_of, objects_under
from stallwise.readers._profile_kinds import seconds_by_kind

FORMAT = "Scalene profile"
CAPTURE = "scalene --json --outfile scalene.json train.py"
EXCLUSIVE = True
PARTS = ("n_cpu_percent_python", "n_cpu_percent_c", "n_sys_percent")
GPU = "n_gpu_percent"


def recognises(name: str, head: bytes) -> bool:
    """Its own names of shares."""
    return head.lstrip()[:1] == b"{" and b'"n_cpu_percent_' in head and b'"lineno"' in head


def read(artifact: Artifact) -> Iterator[Item]:
    """Shares of the elapsed time, line by line."""
    tree = json_of(artifact.text(), artifact.name, "scalene --json --outfile scalene.json train.py")
    whole_s = number_of(tree.get("elapsed_time_sec")) if isinstance(tree, dict) else None
    files = tree.get("files") if isinstance(tree, dict) else None
    if not isinstance(files, dict) or not whole_s or whole_s <= 0:
        raise UnreadableInput(
            f"{artifact.name} holds no times of files", hint="scalene --json --outfile scalene.json train.py"
        )
    rows = [_spent(file, line, whole_s) for file, content in files.items() for line in objects_under(content, "lines")]
    rows = [row for row in rows if row.own_s > 0 or row.device_s > 0]
    yield profile_table(
        rows, Source(artifact.name), of="lines", host_s=whole_s, device_s=sum(r.device_s for r in rows) or UNKNOWN,
        doing=seconds_by_kind(rows), limit="" if any(r.device_s for r in rows) else "no time of a GPU is in it",
    )  # fmt: skip


def _spent(file: str, line: dict[str, Any], whole_s: float) -> Spent:
    own = sum(number_of(line.get(part)) or 0.0 for part in PARTS) / 100 * whole_s
    gpu = (number_of(line.get(GPU)) or 0.0) / 100 * whole_s
    return Spent(f"{file}:{line.get('lineno', '?')} {str(line.get('line', '')).strip()}", own, gpu, own)
