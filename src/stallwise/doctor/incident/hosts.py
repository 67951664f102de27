"""Whose lines a file holds: the host that its lines name, or its name where it is a machine's log."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import PurePath

from stallwise.doctor.incident.rules import document
from stallwise.evidence.evidence import Evidence

_PARTS = re.compile(r"[_.\s]+")


def hosts_of(evidence: Evidence) -> dict[str, str]:
    """Host by file, as far as known."""
    named: dict[str, Counter[str]] = {}
    for event in evidence.events:
        named.setdefault(event.source.file, Counter())
        if event.scope.node:
            named[event.source.file][event.scope.node] += 1
    lines = Counter(e.source.file for e in evidence.events)
    files = {*named, *evidence.inputs, *(t.source.file for t in evidence.tables)}
    found = {file: host for file in files if (host := _host(file, named.get(file, Counter()), lines[file]))}
    every = {node for nodes in named.values() for node in nodes} | set(found.values())
    if len(every) == 1:  # one host is named at all: machine logs without a name are its
        only = next(iter(every))
        found |= {file: only for file in files if file not in found and _is_machines(file)}
    return found


def _host(file: str, nodes: Counter[str], lines: int) -> str:
    """The name that most of its lines have in front, else the one in the file's name."""
    own = _in_name(file)
    if len(nodes) == 1 and nodes.total() * 2 >= lines:
        node = next(iter(nodes))
        return own if own and node in PurePath(file).name and len(own) > len(node) else node
    return own if not nodes else ""


def _in_name(file: str) -> str:
    """A machine's log without the words that say of what: `l40s-rack2-n7_dmesg.txt`, `nvidia-smi_a100-11.txt`."""
    left = [w for w in _words(file) if w.lower() not in document()["files"]["words"]]
    if not _is_machines(file):
        return ""
    return left[0] if len(left) == 1 and any(c.isdigit() for c in left[0]) else ""


def _is_machines(file: str) -> bool:
    return any(w.lower() in document()["files"]["machines"] for w in _words(file))


def _words(file: str) -> list[str]:
    return [w for w in _PARTS.split(PurePath(file.split("!")[-1]).name) if w]
