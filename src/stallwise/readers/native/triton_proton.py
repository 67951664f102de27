"""Proton's tree (hatchet JSON): device time of kernels under the scopes of a Triton program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Source
from stallwise.evidence.profile import Spent, profile_table
from stallwise.readers._cells import json_of, number_of

FORMAT = "Proton profile"
CAPTURE = "proton -n proton -k triton train.py"
EXCLUSIVE = True
TIME = "time (ns)"
NANOSECOND = 1e-9
DEEPEST = 200  # scopes in each other: more is damage


def recognises(name: str, head: bytes) -> bool:
    """A list of frames with metrics of a device."""
    return head.lstrip()[:1] in b"[{" and b'"frame"' in head and b'"metrics"' in head and b'"children"' in head


def read(artifact: Artifact) -> Iterator[Item]:
    """Kernels by their time, and the scopes that hold them."""
    tree = json_of(artifact.text(), artifact.name, CAPTURE)
    kernels: list[Spent] = []
    scopes: dict[str, float] = {}
    for root in tree if isinstance(tree, list) else [tree]:
        if isinstance(root, dict) and "frame" in root:
            _walk(root, "", kernels, scopes)
    if not kernels:
        raise UnreadableInput(f"{artifact.name} holds no kernel with a time", hint=CAPTURE)
    whole = sum(k.device_s for k in kernels)
    held = {scope: s for scope, s in scopes.items() if s < whole}  # one that holds everything tells nothing apart
    yield profile_table(
        kernels,
        Source(artifact.name),
        of="kernels",
        device_s=whole,
        doing=dict(sorted(held.items(), key=lambda x: -x[1])),
    )


def _walk(node: dict[str, Any], scope: str, kernels: list[Spent], scopes: dict[str, float], depth: int = 0) -> None:
    """Leaves are kernels; the scope right above them is what the program calls its work."""
    frame, metrics = _object(node, "frame"), _object(node, "metrics")
    name = str(frame.get("name", "")) or "a kernel without a name"
    children = [c for c in node.get("children") or () if isinstance(c, dict)] if depth < DEEPEST else []
    for child in children:
        _walk(child, name, kernels, scopes, depth + 1)
    seconds = (number_of(metrics.get(TIME)) or 0.0) * NANOSECOND
    if not children and seconds > 0:
        kernels.append(Spent(name, 0.0, seconds, 0.0, number_of(metrics.get("count")) or 1.0))
        scopes[scope] = scopes.get(scope, 0.0) + seconds


def _object(node: dict[str, Any], key: str) -> dict[str, Any]:
    found = node.get(key)
    return found if isinstance(found, dict) else {}
